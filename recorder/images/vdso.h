#ifndef CLEW_RECORDER_IMAGES_VDSO_H_
#define CLEW_RECORDER_IMAGES_VDSO_H_

#include <cstddef>
#include <span>

namespace clew::recorder {

// The code that the kernel maps into every 64-bit process, as this process has
// it: a whole ELF file. Empty where the kernel maps none (vdso=0). Lives as
// long as the process.
std::span<const std::byte> OwnVdso();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_VDSO_H_
