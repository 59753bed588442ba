"""
The native core of gpuviz: devices, the caching allocator, recording and replay.
"""



class DeviceError(RuntimeError):
    pass
