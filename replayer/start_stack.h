#ifndef CLEW_REPLAYER_START_STACK_H_
#define CLEW_REPLAYER_START_STACK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "machine/memory.h"

namespace clew::replayer {

// What the kernel left on the stack of a new program, as far as a debugger
// needs it.
struct StartStack {
  std::vector<std::byte> auxv;  // with AT_NULL; empty if there is none
  uint64_t entry = 0;           // AT_ENTRY: the program's, not ld.so's
};

// Reads upwards from `addr`: argc, argv, NULL, envp, NULL, auxv. Returns an
// empty one if that is not what is there. Source: System V ABI, AMD64
// supplement, "Process Initialization".
StartStack ReadStartStack(const machine::Memory& memory, uint64_t addr);

// Returns the recorded path of the file mapped at `addr`; empty if none is.
std::string FileAt(const StartState& start, uint64_t addr);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_START_STACK_H_
