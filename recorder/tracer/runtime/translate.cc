#include "recorder/tracer/runtime/translate.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "common/x86/layout.h"
#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/executable.h"
#include "recorder/tracer/runtime/fragment_writer.h"
#include "recorder/tracer/runtime/ways.h"

// The entries in entries.S. Hidden: reached without a table of addresses.
extern "C" {
[[gnu::visibility("hidden")]] void tracer_exit();
[[gnu::visibility("hidden")]] void tracer_miss();
[[gnu::visibility("hidden")]] void tracer_full();
[[gnu::visibility("hidden")]] void tracer_call();
[[gnu::visibility("hidden")]] void tracer_input();
[[gnu::visibility("hidden")]] void tracer_step();
[[gnu::visibility("hidden")]] void tracer_cut();
[[gnu::visibility("hidden")]] void tracer_stale();
}

namespace clew::tracer {
namespace {

// The start of the search of an address among the fragments.
uint32_t HashOf(uint64_t addr) {
  return static_cast<uint32_t>(addr * 0x9e3779b97f4a7c15ull >>
                               (64 - Runtime::kHashBits));
}
constexpr uint32_t kHashMask = (1u << Runtime::kHashBits) - 1;

void Note(Runtime& runtime, uint32_t number) {
  uint32_t at = HashOf(runtime.fragment(number).start);
  while (runtime.hash[at] != 0) {
    at = (at + 1) & kHashMask;
  }
  runtime.hash[at] = number;
}

// Code that changes without a system call, and was dropped so often, is
// stepped, in leaps: each copy takes memory that is not given back.
constexpr uint32_t kCopiesMax = 64;

uint32_t CountDropped(Runtime& runtime, uint64_t addr) {
  uint32_t count = 0;
  for (uint32_t at = HashOf(addr); runtime.hash[at] != 0;
       at = (at + 1) & kHashMask) {
    const uint32_t number = runtime.hash[at];
    count += runtime.fragment(number).start == addr &&
                     runtime.translations[number].dropped
                 ? 1
                 : 0;
  }
  return count;
}

// jmp [rip + 2], and the address there: aligned, as the program's flags may ask
// for it (AC).
uint64_t WriteEntry(Code& code, void (*entry)()) {
  code.AlignTo(8, 0xcc);
  const uint64_t at = AddrOf(code.at());
  code.Bytes({0xff, 0x25});
  code.Word(2);
  code.AlignTo(8, 0xcc);
  code.Long(reinterpret_cast<uint64_t>(entry));
  return at;
}

// The instruction of a copy that `ip` is in, or behind: `insns` are the
// copies', from `entry` on, `code` what they are copies of.
CopiedInsn Locate(uint64_t ip, uint64_t entry,
                  std::span<const InsnOffset> insns, uint64_t start,
                  std::span<const uint8_t> code) {
  const auto next =
      std::ranges::upper_bound(insns, ip - entry, {}, &InsnOffset::offset);
  // From its start, over those before it.
  size_t at = 0;
  for (auto insn = std::next(insns.begin()); insn < next; ++insn) {
    at += x86::ScanLayout(code.subspan(at)).length;
  }
  return {start + at, std::prev(next)->saved()};
}

}  // namespace

uint32_t KnownFragmentAt(Runtime& runtime, uint64_t addr) {
  for (uint32_t at = HashOf(addr);; at = (at + 1) & kHashMask) {
    const uint32_t number = runtime.hash[at];
    if (number == 0 || (runtime.fragment(number).start == addr &&
                        !runtime.translations[number].dropped)) {
      return number;
    }
  }
}

uint32_t FragmentAt(Runtime& runtime, uint64_t addr) {
  const uint32_t known = KnownFragmentAt(runtime, addr);
  if (known != 0) {
    return known;
  }
  const Executable code = ExecutableFrom(runtime, addr);
  if (code.end == addr) {
    return 0;
  }
  const bool always_steps = code.is_writable && runtime.shared->in_leaps != 0 &&
                            CountDropped(runtime, addr) >= kCopiesMax;
  const uint32_t written = WriteFragment(runtime, addr, code, always_steps);
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
    WriteJump(arena, edge, false, runtime.ways[edge]);
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

std::optional<CopiedInsn> InsnOfCopy(Runtime& runtime, uint64_t ip) {
  const auto arena = std::ranges::find_if(
      runtime.arenas, [ip](const Arena& each) { return each.Has(ip); });
  if (arena == runtime.arenas.end()) {
    return std::nullopt;
  }
  if (ip - arena->shorts < Arena::kShortBytes) {
    const ShortBlock& block = runtime.short_block;
    return Locate(ip, block.entry,
                  std::span(block.insns).first(block.insn_count), block.start,
                  std::span(block.code).first(block.code_bytes));
  }
  const auto number = static_cast<size_t>(arena - runtime.arenas.begin());
  const auto body = [&runtime](uint32_t fragment) {
    return runtime.translations[fragment].body;
  };
  const std::span fragments = std::span(runtime.fragments_of_arena[number])
                                  .first(runtime.fragment_counts[number]);
  const auto behind = std::ranges::upper_bound(fragments, ip, {}, body);
  if (behind == fragments.begin()) {
    return std::nullopt;
  }
  const uint32_t fragment = *std::prev(behind);
  const Translation& translation = runtime.translations[fragment];
  const Fragment& code = runtime.fragment(fragment);
  if (translation.entry != translation.body && ip >= translation.entry) {
    return CopiedInsn{code.start, kRcx};  // in its check
  }
  return Locate(
      ip, translation.body,
      std::span(runtime.insns)
          .subspan(translation.insns_at, translation.insn_count),
      code.start,
      {runtime.Shared<uint8_t>(kCodeAt) + code.code_at, code.code_bytes});
}

void BeginArena(Arena& arena, uint64_t addr) {
  arena.begin = addr;
  arena.hot = Code(reinterpret_cast<uint8_t*>(addr));
  arena.shorts = addr + Arena::kHotBytes;
  arena.cold =
      Code(reinterpret_cast<uint8_t*>(arena.shorts + Arena::kShortBytes));
  arena.numbers =
      reinterpret_cast<uint64_t*>(addr + Arena::kHotBytes + Arena::kColdBytes);
  arena.exit = WriteEntry(arena.hot, tracer_exit);
  arena.miss = WriteEntry(arena.hot, tracer_miss);
  arena.full = WriteEntry(arena.hot, tracer_full);
  arena.call = WriteEntry(arena.hot, tracer_call);
  arena.input = WriteEntry(arena.hot, tracer_input);
  arena.step = WriteEntry(arena.hot, tracer_step);
  arena.cut = WriteEntry(arena.hot, tracer_cut);
  arena.stale = WriteEntry(arena.hot, tracer_stale);
}

}  // namespace clew::tracer
