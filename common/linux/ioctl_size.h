#ifndef CLEW_COMMON_LINUX_IOCTL_SIZE_H_
#define CLEW_COMMON_LINUX_IOCTL_SIZE_H_

#include <asm-generic/ioctl.h>

// What the number of an ioctl(2) request says of its argument. Compiled as C
// for the BPF program of recorder/bpf/ and as C++ for everyone else.

#ifdef __cplusplus
namespace clew {
#endif

// Returns how long the structure at the argument is, as _IOR, _IOW and _IOWR
// put it into the number; 0 where the number does not say.
static inline unsigned IoctlArgumentBytes(unsigned request) {
  return _IOC_TYPE(request) != 0 ? _IOC_SIZE(request) : 0;
}

// Returns how much of it the kernel writes: all of it, for _IOR and _IOWR.
static inline unsigned IoctlWrittenBytes(unsigned request) {
  return (_IOC_DIR(request) & _IOC_READ) != 0 ? IoctlArgumentBytes(request) : 0;
}

#ifdef __cplusplus
}  // namespace clew
#endif

#endif  // CLEW_COMMON_LINUX_IOCTL_SIZE_H_
