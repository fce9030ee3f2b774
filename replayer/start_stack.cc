#include "replayer/start_stack.h"

#include <array>
#include <optional>
#include <span>

namespace clew::replayer {
namespace {

// elf.h
constexpr uint64_t kAtNull = 0;
constexpr uint64_t kAtEntry = 9;

// The kernel gives some 20 auxiliary values; its limit for arguments and
// environment is far below this many words.
constexpr uint64_t kAuxMax = 256;
constexpr uint64_t kWordsMax = 4u << 20;

class WordReader {
 public:
  WordReader(const machine::Memory& memory, uint64_t addr)
      : memory_(memory), addr_(addr) {}
  // nullopt where nothing is mapped.
  std::optional<uint64_t> Next() {
    uint64_t word = 0;
    if (!memory_.Peek(addr_, std::as_writable_bytes(std::span(&word, 1)))) {
      return std::nullopt;
    }
    addr_ += sizeof(word);
    return word;
  }
  // Past the next word that is 0; false if there is none.
  bool SkipPastNull() {
    for (uint64_t i = 0; i < kWordsMax; ++i) {
      const auto word = Next();
      if (!word || *word == 0) {
        return word.has_value();
      }
    }
    return false;
  }

 private:
  const machine::Memory& memory_;
  uint64_t addr_;
};

}  // namespace

StartStack ReadStartStack(const machine::Memory& memory, uint64_t addr) {
  WordReader words(memory, addr);
  const auto argc = words.Next();
  if (!argc || *argc > kWordsMax || !words.SkipPastNull() ||
      !words.SkipPastNull()) {
    return {};
  }
  StartStack stack;
  for (uint64_t i = 0; i < kAuxMax; ++i) {
    const auto type = words.Next();
    const auto value = words.Next();
    if (!type || !value) {
      return {};
    }
    const std::array<uint64_t, 2> entry = {*type, *value};
    const auto bytes = std::as_bytes(std::span(entry));
    stack.auxv.insert(stack.auxv.end(), bytes.begin(), bytes.end());
    if (*type == kAtEntry) {
      stack.entry = *value;
    }
    if (*type == kAtNull) {
      return stack;
    }
  }
  return {};
}

std::string FileAt(const StartState& start, uint64_t addr) {
  for (const StartSegment& segment : start.segments) {
    const uint64_t begin = segment.addr.as_int();
    if (addr >= begin && addr - begin < segment.size_bytes &&
        segment.name.starts_with('/')) {
      return segment.name;
    }
  }
  return {};
}

}  // namespace clew::replayer
