#include "cupti/cupti_devices.hpp"

namespace gpuviz::cupti {

int CuptiDevices::of(CUcontext context, std::uint32_t number) {
    {
        const std::lock_guard lock(mutex_);
        const auto known = devices_.find(context);
        if (known != devices_.end()) {
            return known->second;
        }
    }
    std::uint32_t device = 0;
    library_.get_device_id(context, &device);
    if (number != 0) {
        const std::lock_guard lock(mutex_);
        devices_[context] = int(device);
    }
    return int(device);
}

std::vector<CUcontext> CuptiDevices::contexts() const {
    const std::lock_guard lock(mutex_);
    std::vector<CUcontext> contexts;
    for (const auto& [context, device] : devices_) {
        contexts.push_back(context);
    }
    return contexts;
}

void CuptiDevices::forget(CUcontext context) {
    const std::lock_guard lock(mutex_);
    devices_.erase(context);
}

void CuptiDevices::forget_all() {
    const std::lock_guard lock(mutex_);
    devices_.clear();
}

}  // namespace gpuviz::cupti
