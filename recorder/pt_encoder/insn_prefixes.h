#ifndef CLEW_RECORDER_PT_ENCODER_INSN_PREFIXES_H_
#define CLEW_RECORDER_PT_ENCODER_INSN_PREFIXES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::recorder {

struct InsnPrefixes {
  size_t bytes = 0;     // all of `code`, if nothing else is in it
  bool repeat = false;  // REP or REPNE
};

// The legacy prefixes and REX that `code` begins with, in 64-bit mode. (A REX
// before another prefix has no effect, but belongs to the instruction all the
// same.)
InsnPrefixes PrefixesOf(std::span<const uint8_t> code);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PT_ENCODER_INSN_PREFIXES_H_
