#include "recorder/redaction/memory_view.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace clew::recorder {
namespace {

constexpr uint64_t kWordBytes = 8;

// The strings of an array of pointers that ends with a null one; `at` is behind
// it afterwards. One that cannot be read (a program wrote over it) is left out.
Result<std::vector<StackString>> ReadStrings(const MemoryView& memory,
                                             uint64_t& at) {
  std::vector<StackString> strings;
  for (size_t i = 0; i < StackStrings::kStringsMax; ++i, at += kWordBytes) {
    const auto pointer = memory.ReadWord(at);
    if (!pointer) {
      return Unsupported(
          "the list of strings at {:#x} leads out of the memory "
          "that was recorded",
          at);
    }
    if (*pointer == 0) {
      at += kWordBytes;
      return strings;
    }
    auto text = memory.ReadString(*pointer, StackStrings::kStringBytesMax);
    if (text) {
      strings.push_back({.addr = *pointer, .text = std::move(*text)});
    }
  }
  return Unsupported("the list of strings before {:#x} has no end", at);
}

// Where argc is, if the environment ends before `auxv_at`: back over the
// environment to its beginning, which a null pointer precedes, and on over the
// arguments until a word is how many there were.
std::optional<uint64_t> FindCount(const MemoryView& memory, uint64_t auxv_at) {
  uint64_t at = auxv_at - kWordBytes;
  if (memory.ReadWord(at) != 0u) {
    return std::nullopt;
  }
  size_t words = 0;
  do {
    at -= kWordBytes;
  } while (++words < StackStrings::kStringsMax &&
           memory.ReadWord(at).value_or(0) != 0);
  for (uint64_t count = 0; count < StackStrings::kStringsMax; ++count) {
    at -= kWordBytes;
    const auto word = memory.ReadWord(at);
    if (!word) {
      return std::nullopt;
    }
    if (*word == count) {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace

MemoryView::MemoryView(std::vector<MemoryPart> parts)
    : parts_(std::move(parts)) {
  std::ranges::sort(parts_, {}, &MemoryPart::addr);
}

const MemoryPart* MemoryView::Find(uint64_t addr) const {
  const auto after =
      std::ranges::upper_bound(parts_, addr, {}, &MemoryPart::addr);
  if (after == parts_.begin()) {
    return nullptr;
  }
  const MemoryPart& part = *std::prev(after);
  return addr - part.addr < part.bytes.size() ? &part : nullptr;
}

bool MemoryView::Read(uint64_t addr, std::span<std::byte> out) const {
  while (!out.empty()) {
    const MemoryPart* part = Find(addr);
    if (part == nullptr) {
      return false;
    }
    const auto rest = part->bytes.subspan(addr - part->addr);
    const size_t count = std::min(rest.size(), out.size());
    std::ranges::copy(rest.first(count), out.begin());
    out = out.subspan(count);
    addr += count;
  }
  return true;
}

std::optional<uint64_t> MemoryView::ReadWord(uint64_t addr) const {
  uint64_t word = 0;
  return Read(addr, std::as_writable_bytes(std::span(&word, 1)))
             ? std::optional(word)
             : std::nullopt;
}

std::optional<std::string> MemoryView::ReadString(uint64_t addr,
                                                  size_t bytes_max) const {
  std::string text;
  for (const MemoryPart* part = Find(addr); part != nullptr;
       part = Find(addr + text.size())) {
    auto rest = part->bytes.subspan(addr + text.size() - part->addr);
    rest = rest.first(std::min(rest.size(), bytes_max - text.size() + 1));
    const auto end = std::ranges::find(rest, std::byte{0});
    text.append(reinterpret_cast<const char*>(rest.data()),
                static_cast<size_t>(end - rest.begin()));
    if (end != rest.end()) {
      return text;
    }
    if (text.size() > bytes_max) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Result<StackStrings> ReadStackStrings(const MemoryView& memory, uint64_t rsp) {
  const auto count = memory.ReadWord(rsp);
  if (!count || *count > StackStrings::kStringsMax) {
    return Unsupported("there is no count of arguments at {:#x}", rsp);
  }
  uint64_t at = rsp + kWordBytes;
  CLEW_ASSIGN_OR_RETURN(arguments, ReadStrings(memory, at));
  CLEW_ASSIGN_OR_RETURN(environment, ReadStrings(memory, at));
  return StackStrings{.arguments = std::move(arguments),
                      .environment = std::move(environment)};
}

Result<StackStrings> FindStackStrings(const MemoryView& memory,
                                      std::span<const std::byte> auxv) {
  for (const MemoryPart& part : memory.parts()) {
    if (!part.writable || auxv.empty()) {
      continue;
    }
    const std::byte* const begin = part.bytes.data();
    const std::byte* const end = begin + part.bytes.size();
    for (const std::byte* at = begin; at != nullptr && at < end; ++at) {
      at = static_cast<const std::byte*>(
          memmem(at, static_cast<size_t>(end - at), auxv.data(), auxv.size()));
      if (at == nullptr) {
        break;
      }
      const auto count_at =
          FindCount(memory, part.addr + static_cast<uint64_t>(at - begin));
      if (count_at) {
        return ReadStackStrings(memory, *count_at);
      }
    }
  }
  return Unsupported(
      "the auxiliary vector that the dump notes is not in the "
      "memory that was dumped");
}

}  // namespace clew::recorder
