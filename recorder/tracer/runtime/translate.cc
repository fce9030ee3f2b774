#include "recorder/tracer/runtime/translate.h"

#include <algorithm>
#include <utility>

#include "recorder/tracer/runtime/encode.h"
#include "recorder/tracer/runtime/executable.h"
#include "recorder/tracer/runtime/fragment_writer.h"
#include "recorder/tracer/runtime/ways.h"

// The entries in entries.S. Hidden: reached without a table of addresses.
extern "C" {
[[gnu::visibility("hidden")]] void tracer_exit();
[[gnu::visibility("hidden")]] void tracer_miss();
[[gnu::visibility("hidden")]] void tracer_full();
[[gnu::visibility("hidden")]] void tracer_call();
}

namespace clew::tracer {
namespace {

// The start of the search of an address among the fragments.
uint32_t HashOf(uint64_t addr) {
  return static_cast<uint32_t>(addr * 0x9e3779b97f4a7c15ull >>
                               (64 - Runtime::kHashBits));
}
constexpr uint32_t kHashMask = (1u << Runtime::kHashBits) - 1;

uint32_t Find(Runtime& runtime, uint64_t addr) {
  for (uint32_t at = HashOf(addr);; at = (at + 1) & kHashMask) {
    const uint32_t number = runtime.hash[at];
    if (number == 0 || (runtime.fragment(number).start == addr &&
                        !runtime.translations[number].dropped)) {
      return number;
    }
  }
}

void Note(Runtime& runtime, uint32_t number) {
  uint32_t at = HashOf(runtime.fragment(number).start);
  while (runtime.hash[at] != 0) {
    at = (at + 1) & kHashMask;
  }
  runtime.hash[at] = number;
}

// jmp [rip + 0], and the address behind it.
uint64_t WriteEntry(Code& code, void (*entry)()) {
  const uint64_t at = AddrOf(code.at());
  code.Bytes({0xff, 0x25});
  code.Word(0);
  code.Long(reinterpret_cast<uint64_t>(entry));
  return at;
}

}  // namespace

uint32_t FragmentAt(Runtime& runtime, uint64_t addr) {
  const uint32_t known = Find(runtime, addr);
  if (known != 0) {
    return known;
  }
  const uint64_t end = ExecutableEnd(runtime, addr);
  if (end == addr) {
    return 0;
  }
  const uint32_t written = WriteFragment(runtime, addr, end);
  Note(runtime, written);
  return written;
}

uint64_t IndirectEntry(Runtime& runtime, uint32_t fragment) {
  Translation& translation = runtime.translations[fragment];
  if (translation.indirect_entry == 0) {
    Arena& arena = ArenaFor(runtime, runtime.fragment(fragment).start);
    if (!arena.HasRoom()) {
      Stop(runtime, Fault::kTooManyFragments, fragment);
    }
    arena.hot.AlignTo(8, 0xcc);
    translation.indirect_entry = AddrOf(arena.hot.at());
    Restore(arena.hot, kRdx);
    Restore(arena.hot, kRax);
    uint8_t* const go_on = WriteRecord(arena.hot, fragment);
    Restore(arena.hot, kRcx);
    const uint32_t edge =
        AddEdge(runtime, {runtime.fragment(fragment).start, fragment, 0});
    runtime.ways[edge] = WriteJump(arena, edge, false);
    Link(runtime, edge, fragment);
    GoOnWhenFull(arena, go_on);
  }
  return translation.indirect_entry;
}

void Link(Runtime& runtime, uint32_t edge, uint32_t fragment) {
  Translation& translation = runtime.translations[fragment];
  Way& way = runtime.ways[edge];
  if (way.is_linked) {
    return;  // by another thread, in the meantime
  }
  way.is_linked = true;
  way.next = std::exchange(translation.first_way_in, edge);
  SetJump(way.jump, translation.entry);
}

void Drop(Runtime& runtime, uint64_t begin, uint64_t end) {
  ForgetExecutable(runtime);
  const uint32_t fragments = std::min(
      runtime.shared->fragments.load(std::memory_order_relaxed), kFragmentsMax);
  for (uint32_t number = 1; number < fragments; ++number) {
    Translation& translation = runtime.translations[number];
    const Fragment& fragment = runtime.fragment(number);
    if (translation.entry == 0 || translation.dropped ||
        fragment.start + fragment.code_bytes <= begin ||
        fragment.start >= end) {
      continue;
    }
    translation.dropped = true;
    for (uint32_t edge = std::exchange(translation.first_way_in, 0); edge != 0;
         edge = runtime.ways[edge].next) {
      runtime.ways[edge].is_linked = false;
      SetJump(runtime.ways[edge].jump, runtime.ways[edge].exit);
    }
  }
}

void BeginArena(Arena& arena, uint64_t addr) {
  arena.begin = addr;
  arena.hot = Code(reinterpret_cast<uint8_t*>(addr));
  arena.cold = Code(reinterpret_cast<uint8_t*>(addr + Arena::kHotBytes));
  arena.numbers =
      reinterpret_cast<uint64_t*>(addr + Arena::kHotBytes + Arena::kColdBytes);
  arena.exit = WriteEntry(arena.hot, tracer_exit);
  arena.miss = WriteEntry(arena.hot, tracer_miss);
  arena.full = WriteEntry(arena.hot, tracer_full);
  arena.call = WriteEntry(arena.hot, tracer_call);
}

}  // namespace clew::tracer
