#include "device/device.hpp"
