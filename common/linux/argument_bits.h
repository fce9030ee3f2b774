#ifndef CLEW_COMMON_LINUX_ARGUMENT_BITS_H_
#define CLEW_COMMON_LINUX_ARGUMENT_BITS_H_

#include <array>
#include <cstdint>

namespace clew {

// How many low bits of each argument register mean something to a call: 0 where
// the kernel does not look at the argument, which depends on what the others
// ask for (open without O_CREAT has no mode). All 0 for a number that Linux 6.1
// does not have.
using ArgumentBits = std::array<uint8_t, 6>;
ArgumentBits BitsOfArguments(uint64_t number,
                             const std::array<uint64_t, 6>& args);

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_ARGUMENT_BITS_H_
