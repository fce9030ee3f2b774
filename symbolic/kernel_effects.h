#ifndef CLEW_SYMBOLIC_KERNEL_EFFECTS_H_
#define CLEW_SYMBOLIC_KERNEL_EFFECTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "process/tape.h"
#include "symbolic/word_table.h"

namespace clew::symbolic {

// Something that the kernel did to a range of memory on behalf of a thread, and
// that is no access in the word table: when it happened among the accesses of
// other threads is not searched over.
struct KernelEffect {
  enum class Kind : uint8_t {
    kUnmaps,    // munmap, mremap, a fixed mmap, a smaller heap
    kProtects,  // mprotect that takes a right away
    kDiscards,  // madvise after which the pages read as zero
    kWrites,    // by a call that may sleep, at some moment before it returned
    kSignal,    // a signal's frame
  };
  Kind kind = Kind::kUnmaps;
  size_t thread = 0;
  uint64_t input = 0;  // position among the thread's inputs
  uint64_t addr = 0;
  uint64_t end = 0;
};

// All of them, from the input log. A first mapping is none: nobody can have
// accessed the range before it. kUnsupported: inputs are missing.
[[nodiscard]] Result<std::vector<KernelEffect>> KernelEffects(
    process::Tape& tape);

// Those whose range another thread touches that was not created after them (or,
// of what the pages read as, that any thread touches), one phrase for each kind
// and thread.
[[nodiscard]] Result<std::vector<std::string>> UnorderedKernelEffects(
    process::Tape& tape, const WordTable& words);

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_KERNEL_EFFECTS_H_
