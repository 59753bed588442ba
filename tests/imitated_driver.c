// Imitates NVIDIA's driver as far as gpuviz needs it to find a GPU and to allocate; nothing computes.
// `scripts.test_wheel` and tests of `gpuviz run` compile it to libcuda.so.1, for machines without a
// driver.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SUCCEED(name) \
    int name(void) { return 0; }
#define REFUSE(name) \
    int name(void) { return 801; } /* not supported */

static const size_t kMemory = (size_t)8 << 30;

static int set(int* place, int value) {
    *place = value;
    return 0;
}

static int set_pointer(void** place) {
    *place = (void*)1;
    return 0;
}

SUCCEED(cuInit)
int cuDriverGetVersion(int* version) { return set(version, 13000); }
int cuGetErrorName(int, const char**) { return 1; }
int cuGetErrorString(int, const char**) { return 1; }

int cuDeviceGetCount(int* count) { return set(count, 1); }
int cuDeviceGet(int* device, int ordinal) { return set(device, ordinal); }
int cuDeviceGetAttribute(int* value, int, int) { return set(value, 0); }
int cuDeviceGetName(char* name, int size, int) {
    strncpy(name, "Imitated GPU", size);
    return 0;
}
int cuDeviceGetPCIBusId(char* id, int size, int) {
    strncpy(id, "0000:01:00.0", size);
    return 0;
}
int cuDeviceGetUuid_v2(void* uuid, int) {
    memset(uuid, 1, 16);
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = kMemory;
    return 0;
}
REFUSE(cuDeviceGetP2PAttribute)

int cuDevicePrimaryCtxRetain(void** context, int) { return set_pointer(context); }
int cuCtxGetCurrent(void** context) { return set_pointer(context); }
SUCCEED(cuCtxPushCurrent_v2)
SUCCEED(cuCtxPopCurrent_v2)
SUCCEED(cuCtxSynchronize)

int cuMemGetInfo_v2(size_t* free_bytes, size_t* bytes) {
    *free_bytes = *bytes = kMemory;
    return 0;
}
int cuMemAlloc_v2(void** address, size_t size) {
    *address = malloc(size);
    return *address == NULL ? 2 : 0;
}
int cuMemFree_v2(void* address) {
    free(address);
    return 0;
}
REFUSE(cuMemAddressReserve)
REFUSE(cuMemAddressFree)
REFUSE(cuMemCreate)
REFUSE(cuMemRelease)
REFUSE(cuMemMap)
REFUSE(cuMemUnmap)
REFUSE(cuMemSetAccess)
REFUSE(cuMemHostAlloc)
REFUSE(cuMemFreeHost)
REFUSE(cuMemsetD8Async)
REFUSE(cuMemcpy2DAsync_v2)

int cuEventCreate(void** event, unsigned) { return set_pointer(event); }
int cuStreamGetFlags(void*, int* flags) { return set(flags, 0); }
int cuStreamIsCapturing(void*, int* status) { return set(status, 0); }
SUCCEED(cuEventRecord)
SUCCEED(cuEventQuery)
SUCCEED(cuEventSynchronize)
SUCCEED(cuStreamQuery)
SUCCEED(cuStreamSynchronize)
SUCCEED(cuThreadExchangeStreamCaptureMode)
