#include "recorder/tracer/runtime/ways.h"

#include <cstddef>

#include "common/x86/branch.h"
#include "recorder/tracer/runtime/code/encode.h"

namespace clew::tracer {
namespace {

// The way into the runtime of an edge.
uint64_t WriteExit(Arena& arena, uint32_t edge) {
  const uint64_t at = AddrOf(arena.cold.at());
  Save(arena.cold, kRcx);
  arena.cold.Byte(0xb8 | kRcx);  // mov ecx, edge
  arena.cold.Word(edge);
  Jump(arena.cold, arena.exit);
  return at;
}

}  // namespace

Arena& ArenaFor(Runtime& runtime, uint64_t addr) {
  auto& [first, second] = runtime.arenas;
  const auto distance = [addr](const Arena& arena) {
    return arena.begin > addr ? arena.begin - addr : addr - arena.begin;
  };
  return second.begin != 0 && distance(second) < distance(first) ? second
                                                                 : first;
}

uint32_t Take(Runtime& runtime, std::atomic<uint32_t>& used, uint32_t count,
              uint32_t max) {
  const uint32_t first = used.fetch_add(count, std::memory_order_relaxed);
  if (first > max - count) {
    Stop(runtime, Fault::kTooManyFragments, first);
  }
  return first;
}

uint32_t AddEdge(Runtime& runtime, const Edge& edge) {
  const uint32_t number = Take(runtime, runtime.shared->edges, 1, kEdgesMax);
  runtime.edge(number) = edge;
  return number;
}

uint8_t* WriteRecord(Code& code, LogRecord record) {
  constexpr auto kIndex =
      static_cast<uint32_t>(offsetof(ThreadState, log_index));
  LoadFromState(code, kRcx, kIndex);
  code.Bytes({0x65, 0xc7, 0x81});  // mov dword gs:[rcx + kLogEnd], record
  code.Word(kLogEnd);
  code.Word(record);
  code.Bytes({0x48, 0x8d, 0x49, sizeof(LogRecord)});  // lea rcx, [rcx + 4]
  StoreInState(code, kRcx, kIndex);
  code.Bytes({0xe3, 0});  // jrcxz, to what GoOnWhenFull writes
  return code.at();
}

void GoOnWhenFull(Arena& arena, uint8_t* go_on) {
  go_on[-1] = static_cast<uint8_t>(arena.hot.at() - go_on);
  arena.hot.Bytes({0x48, 0x8d, 0x0d});  // lea rcx, [go_on]
  arena.hot.Relative(AddrOf(go_on));
  Jump(arena.hot, arena.full);
}

void WriteJump(Arena& arena, uint32_t edge, bool is_far, Way& way) {
  const uint64_t exit = WriteExit(arena, edge);
  way.exit = exit;
  if (is_far) {
    way.jump = AddrOf(arena.hot.at());
    arena.hot.Bytes({0xff, 0x25});
    arena.hot.Relative(arena.Number(exit));
    return;
  }
  while ((AddrOf(arena.hot.at() + 1) & 7) > 4) {
    arena.hot.Byte(0x90);
  }
  way.jump = AddrOf(arena.hot.at());
  Jump(arena.hot, exit);
}

void SetJump(uint64_t jump, uint64_t target) {
  auto* const code = reinterpret_cast<uint8_t*>(jump);
  if (*code == 0xe9) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(code + 1),
                     static_cast<uint32_t>(target - (jump + 5)),
                     __ATOMIC_RELEASE);
    return;
  }
  constexpr size_t kDisplacementAt = 2;
  constexpr size_t kBytes = 6;
  const int64_t number =
      x86::SignedNumber({code + kDisplacementAt, 4}).value_or(0);
  __atomic_store_n(reinterpret_cast<uint64_t*>(jump + kBytes +
                                               static_cast<uint64_t>(number)),
                   target, __ATOMIC_RELEASE);
}

}  // namespace clew::tracer
