#include "recorder/tracer/runtime/translate.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "recorder/tracer/runtime/executable.h"

// The entries in entries.S. Hidden: reached without a table of addresses.
extern "C" {
[[gnu::visibility("hidden")]] void tracer_exit();
[[gnu::visibility("hidden")]] void tracer_miss();
[[gnu::visibility("hidden")]] void tracer_full();
[[gnu::visibility("hidden")]] void tracer_call();
}

namespace clew::tracer {
namespace {

using x86::BranchClass;
using x86::Layout;
using x86::OpcodeMap;

constexpr size_t kInsnsMax = 96;
constexpr size_t kBranchesMax = 24;

// ---- Encodings -------------------------------------------------------------
//
// Source: Intel SDM vol. 2, "Instruction Set Reference".

enum Register : uint8_t {
  kRax = 0,
  kRcx = 1,
  kRdx = 2,
  kRbx = 3,
  kRsi = 6,
  kRdi = 7
};

constexpr uint32_t StateOffset(Register gpr) { return 8u * gpr; }

// mov gs:[offset], gpr; mov gpr, gs:[offset]
void StoreInState(Code& code, Register gpr, uint32_t offset) {
  code.Bytes({0x65, 0x48, 0x89, static_cast<uint8_t>(4 | gpr << 3), 0x25});
  code.Word(offset);
}
void LoadFromState(Code& code, Register gpr, uint32_t offset) {
  code.Bytes({0x65, 0x48, 0x8b, static_cast<uint8_t>(4 | gpr << 3), 0x25});
  code.Word(offset);
}
void Save(Code& code, Register gpr) {
  StoreInState(code, gpr, StateOffset(gpr));
}
void Restore(Code& code, Register gpr) {
  LoadFromState(code, gpr, StateOffset(gpr));
}

void Jump(Code& code, uint64_t target) {
  code.Byte(0xe9);
  code.Relative(target);
}

// mov gpr, value
void LoadNumber(Code& code, Register gpr, uint64_t value) {
  code.Bytes({0x48, static_cast<uint8_t>(0xb8 | gpr)});
  code.Long(value);
}

// Pushes a return address; push value, where it is a sign-extended number.
void PushAddress(Arena& arena, uint64_t value) {
  const auto number = static_cast<int64_t>(value);
  if (number == static_cast<int32_t>(number)) {
    arena.hot.Byte(0x68);
    arena.hot.Word(static_cast<uint32_t>(value));
    return;
  }
  arena.hot.Bytes({0xff, 0x35});  // push [number]
  arena.hot.Relative(arena.Number(value));
}

// ---- Records and edges -----------------------------------------------------

// Writes a record; RCX is free. Returns where it goes on: there a call of
// GoOnWhenFull belongs.
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

// What the runtime does when the log is full, and on to `go_on`.
void GoOnWhenFull(Arena& arena, uint8_t* go_on) {
  go_on[-1] = static_cast<uint8_t>(arena.hot.at() - go_on);
  arena.hot.Bytes({0x48, 0x8d, 0x0d});  // lea rcx, [go_on]
  arena.hot.Relative(AddrOf(go_on));
  Jump(arena.hot, arena.full);
}

// The way into the runtime of an edge.
uint64_t WriteExit(Arena& arena, uint32_t edge) {
  const uint64_t at = AddrOf(arena.cold.at());
  Save(arena.cold, kRcx);
  arena.cold.Byte(0xb8 | kRcx);  // mov ecx, edge
  arena.cold.Word(edge);
  Jump(arena.cold, arena.exit);
  return at;
}

// A jump that Link changes by one store, and that enters the runtime until
// then: its displacement does not cross 8 bytes; or its target is a number,
// where the other cache is out of reach.
Way WriteJump(Arena& arena, uint32_t edge, bool is_far) {
  const uint64_t exit = WriteExit(arena, edge);
  if (is_far) {
    const uint64_t at = AddrOf(arena.hot.at());
    arena.hot.Bytes({0xff, 0x25});
    arena.hot.Relative(arena.Number(exit));
    return {at, exit, 0, false};
  }
  while ((AddrOf(arena.hot.at() + 1) & 7) > 4) {
    arena.hot.Byte(0x90);
  }
  const uint64_t at = AddrOf(arena.hot.at());
  Jump(arena.hot, exit);
  return {at, exit, 0, false};
}

// Lets what WriteJump wrote lead to `target`.
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
  const auto number = *x86::SignedNumber({code + kDisplacementAt, 4});
  __atomic_store_n(reinterpret_cast<uint64_t*>(jump + kBytes +
                                               static_cast<uint64_t>(number)),
                   target, __ATOMIC_RELEASE);
}

// ---- Operands --------------------------------------------------------------

bool IsRipRelative(const Layout& layout) {
  return layout.names_memory() && (*layout.modrm & 0xc7) == 5;
}

// Where an instruction has the bit that extends the base register; nullopt: it
// cannot. In VEX and EVEX the bit is inverted.
struct BaseBit {
  size_t at = 0;
  uint8_t mask = 0;
  bool is_inverted = false;
};
std::optional<BaseBit> BaseBitOf(const x86::Opcode& opcode) {
  switch (opcode.encoding) {
    case x86::Encoding::kVex2:
      return std::nullopt;
    case x86::Encoding::kVex3:
      return BaseBit{size_t{opcode.bytes} - 3, 0x20, true};
    case x86::Encoding::kEvex:
      return BaseBit{size_t{opcode.bytes} - 4, 0x20, true};
    case x86::Encoding::kLegacy:
      break;
  }
  if (opcode.prefixes.rex == 0) {
    return std::nullopt;
  }
  const size_t escape = opcode.map == OpcodeMap::kOneByte ? 0
                        : opcode.map == OpcodeMap::k0F    ? 1
                                                          : 2;
  return BaseBit{opcode.bytes - 2 - escape, 1, false};
}

// The register that vvvv of VEX or EVEX names, without its upper bit; 0xff: it
// has none.
uint8_t NamedByVvvv(const x86::Opcode& opcode, const uint8_t* insn) {
  switch (opcode.encoding) {
    case x86::Encoding::kLegacy:
      return 0xff;
    case x86::Encoding::kVex2:
    case x86::Encoding::kVex3:
    case x86::Encoding::kEvex:
      break;
  }
  const size_t behind = opcode.encoding == x86::Encoding::kEvex ? 3 : 2;
  return ~insn[opcode.bytes - behind] >> 3 & 7;
}

// A register that an instruction with an operand in memory does not use: none
// of these is one's without being named, but RBX of CMPXCHG8B and CMPXCHG16B,
// which name one at most.
Register FreeRegister(const Layout& layout, const uint8_t* insn) {
  const uint8_t in_modrm = *layout.modrm >> 3 & 7;
  const uint8_t in_vvvv = NamedByVvvv(layout.opcode, insn);
  for (const Register gpr : {kRdi, kRsi}) {
    if (gpr != in_modrm && gpr != in_vvvv) {
      return gpr;
    }
  }
  return kRbx;
}

struct Insn {
  uint64_t addr = 0;
  const uint8_t* bytes = nullptr;
  Layout layout;
  x86::Branch branch;

  uint64_t next() const { return addr + layout.length; }
  std::span<const uint8_t> all() const { return {bytes, layout.length}; }
  size_t modrm_at() const { return layout.opcode.bytes; }
  // Of an operand relative to RIP.
  size_t displacement_at() const { return modrm_at() + 1; }
  uint64_t operand() const {
    const auto displacement = static_cast<uint64_t>(
        *x86::SignedNumber({bytes + displacement_at(), 4}));
    const uint64_t operand = next() + displacement;
    return layout.opcode.prefixes.address_size ? operand & 0xffffffff : operand;
  }
  uint64_t target() const {
    return next() + static_cast<uint64_t>(branch.displacement);
  }
};

// With [gpr] for the operand.
void CopyThroughRegister(Code& code, const Insn& insn) {
  const Register gpr = FreeRegister(insn.layout, insn.bytes);
  Save(code, gpr);
  LoadNumber(code, gpr, insn.operand());
  const std::optional<BaseBit> base = BaseBitOf(insn.layout.opcode);
  uint8_t* const copy = code.at();
  code.Bytes(insn.all().first(insn.modrm_at()));
  if (base && base->is_inverted) {
    copy[base->at] |= base->mask;
  } else if (base) {
    copy[base->at] &= static_cast<uint8_t>(~base->mask);
  }
  code.Byte((*insn.layout.modrm & 0x38) | gpr);
  code.Bytes(insn.all().subspan(insn.displacement_at() + 4));
  Restore(code, gpr);
}

void CopyInsn(Code& code, const Insn& insn) {
  if (!IsRipRelative(insn.layout)) {
    code.Bytes(insn.all());
    return;
  }
  const uint64_t end = AddrOf(code.at()) + insn.layout.length;
  const bool reaches = Reaches(end, insn.operand());
  if (!reaches || insn.layout.opcode.prefixes.address_size) {
    CopyThroughRegister(code, insn);
    return;
  }
  code.Bytes(insn.all().first(insn.displacement_at()));
  code.Word(static_cast<uint32_t>(insn.operand() - end));
  code.Bytes(insn.all().subspan(insn.displacement_at() + 4));
}

// Loads the operand of an indirect jump or call to RCX.
void LoadTarget(Code& code, const Insn& insn) {
  const x86::Prefixes& prefixes = insn.layout.opcode.prefixes;
  if (IsRipRelative(insn.layout)) {
    LoadNumber(code, kRcx, insn.operand());
  }
  if (prefixes.segment == x86::Segment::kFs) {
    code.Byte(0x64);
  }
  if (IsRipRelative(insn.layout)) {
    code.Bytes({0x48, 0x8b, 0x09});  // mov rcx, [rcx]
    return;
  }
  if (prefixes.address_size) {
    code.Byte(0x67);
  }
  code.Bytes({static_cast<uint8_t>(0x48 | (prefixes.rex & 3)), 0x8b,
              static_cast<uint8_t>((*insn.layout.modrm & 0xc7) | kRcx << 3)});
  code.Bytes(insn.all().subspan(insn.modrm_at() + 1));
}

// ---- Instructions that cannot be copied ------------------------------------

// XBEGIN: the target of its abort is relative.
bool IsXbegin(const Insn& insn) {
  return insn.layout.opcode.IsLegacy(OpcodeMap::kOneByte) &&
         insn.layout.opcode.code == 0xc7 && insn.layout.modrm == 0xf8;
}

bool IsSyscall(const Insn& insn) {
  return insn.layout.opcode.IsLegacy(OpcodeMap::k0F) &&
         insn.layout.opcode.code == 0x05;
}

// INT3, INT and INT1 return behind themselves, and #UD does not return.
bool IsTrap(const Insn& insn) {
  const x86::Opcode& opcode = insn.layout.opcode;
  return opcode.IsLegacy(OpcodeMap::kOneByte) &&
         (opcode.code == 0xcc || opcode.code == 0xcd || opcode.code == 0xf1);
}

// RDGSBASE, WRGSBASE; MOV, POP and LGS to GS. What they would read or change is
// the runtime's.
bool UsesGsBase(const Layout& layout) {
  const x86::Opcode& opcode = layout.opcode;
  const unsigned reg = layout.modrm.value_or(0) >> 3 & 7;
  if (opcode.prefixes.segment == x86::Segment::kGs && layout.names_memory() &&
      !(opcode.IsLegacy(OpcodeMap::kOneByte) && opcode.code == 0x8d)) {
    return true;
  }
  if (opcode.IsLegacy(OpcodeMap::kOneByte)) {
    return opcode.code == 0x8e && reg == 5;
  }
  if (!opcode.IsLegacy(OpcodeMap::k0F)) {
    return false;
  }
  return opcode.code == 0xa9 || opcode.code == 0xb5 ||
         (opcode.code == 0xae && opcode.prefixes.rep &&
          !layout.names_memory() && (reg == 1 || reg == 3));
}

bool IsUnsupported(const Insn& insn) {
  return UsesGsBase(insn.layout) || IsXbegin(insn) ||
         (insn.branch.branch_class == BranchClass::kFar && !IsSyscall(insn) &&
          !IsTrap(insn));
}

// ---- Fragments
// -----------------------------------------------------------------

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

// Takes `count` of a table in the shared memory.
uint32_t Take(Runtime& runtime, std::atomic<uint32_t>& used, uint32_t count,
              uint32_t max) {
  const uint32_t first = used.fetch_add(count, std::memory_order_relaxed);
  if (first > max - count) {
    Stop(runtime, Fault::kTooManyFragments, first);
  }
  return first;
}

// The cache for code at `addr`: the nearer one.
Arena& ArenaFor(Runtime& runtime, uint64_t addr) {
  auto& [first, second] = runtime.arenas;
  const auto distance = [addr](const Arena& arena) {
    return arena.begin > addr ? arena.begin - addr : addr - arena.begin;
  };
  return second.begin != 0 && distance(second) < distance(first) ? second
                                                                 : first;
}

uint32_t AddEdge(Runtime& runtime, const Edge& edge) {
  const uint32_t number = Take(runtime, runtime.shared->edges, 1, kEdgesMax);
  runtime.edge(number) = edge;
  return number;
}

class FragmentWriter {
 public:
  FragmentWriter(Runtime& runtime, uint64_t start, uint64_t end)
      : runtime_(runtime),
        arena_(ArenaFor(runtime, start)),
        addr_(start),
        readable_end_(end) {
    if (!arena_.HasRoom()) {
      Stop(runtime, Fault::kTooManyFragments, start);
    }
    number_ = Take(runtime, runtime.shared->fragments, 1, kFragmentsMax);
    fragment_.start = start;
    arena_.hot.AlignTo(8, 0xcc);
    entry_ = AddrOf(arena_.hot.at());
  }

  uint32_t Write() {
    for (size_t insns = 0; !ended_; ++insns) {
      if (insns == kInsnsMax || branch_count_ == kBranchesMax) {
        Fall(addr_, false);
        break;
      }
      WriteNext();
    }
    WriteTakenBranches();
    Publish();
    return number_;
  }

 private:
  // Of a conditional branch: its displacement is to lead to its taken side.
  struct TakenBranch {
    uint8_t* displacement = nullptr;
    uint32_t edge = 0;
  };

  void WriteNext() {
    Insn insn{addr_, reinterpret_cast<const uint8_t*>(addr_), {}, {}};
    const uint64_t readable =
        std::min<uint64_t>(readable_end_ - addr_, x86::kInsnBytesMax);
    insn.layout = x86::ScanLayout({insn.bytes, readable});
    if (insn.layout.status != x86::LayoutStatus::kWhole) {
      EndAtNone(insn);
      return;
    }
    insn.branch = x86::ClassifyBranch(insn.layout.opcode, insn.all());
    if (IsUnsupported(insn)) {
      if (addr_ != fragment_.start) {
        Fall(addr_, false);
        return;
      }
      Stop(runtime_, Fault::kUnsupportedInsn, addr_);
    }
    addr_ = insn.next();
    WriteInsn(insn);
  }

  void WriteInsn(const Insn& insn) {
    switch (insn.branch.branch_class) {
      case BranchClass::kNone:
      case BranchClass::kRepString:
        CopyInsn(arena_.hot, insn);
        break;
      case BranchClass::kConditional:
        WriteConditional(insn);
        break;
      case BranchClass::kDirectCall:
        PushAddress(arena_, insn.next());
        [[fallthrough]];
      case BranchClass::kDirectJump:
        Fall(insn.target(), insn.target() <= insn.addr);
        break;
      case BranchClass::kIndirectJump:
      case BranchClass::kIndirectCall:
        Save(arena_.hot, kRcx);
        LoadTarget(arena_.hot, insn);
        if (insn.branch.branch_class == BranchClass::kIndirectCall) {
          PushAddress(arena_, insn.next());
        }
        LookUp();
        break;
      case BranchClass::kReturn:
        WriteReturn(insn);
        break;
      case BranchClass::kFar:
        if (IsSyscall(insn)) {
          WriteSyscall(insn);
        } else {
          CopyInsn(arena_.hot, insn);
        }
        break;
    }
  }

  // What is here is no instruction, or not all of it can be executed: the CPU
  // says so, here.
  void EndAtNone(const Insn& insn) {
    if (addr_ != fragment_.start) {
      Fall(addr_, false);
      return;
    }
    if (insn.layout.status == x86::LayoutStatus::kUndefined) {
      arena_.hot.Bytes({0x0f, 0x0b});  // ud2
    } else {
      // It faults where it is.
      arena_.hot.Bytes({0xff, 0x25});
      arena_.hot.Relative(arena_.Number(addr_));
    }
    End(FragmentEnd::kNowhere);
  }

  void WriteConditional(const Insn& insn) {
    Code& hot = arena_.hot;
    const x86::Opcode& opcode = insn.layout.opcode;
    const bool is_jcc = opcode.map == OpcodeMap::k0F || opcode.code >> 4 == 7;
    if (is_jcc) {
      hot.Bytes({0x0f, static_cast<uint8_t>(0x80 | (opcode.code & 15))});
    } else {
      // Over a jump to what follows, to one to the taken side.
      hot.Bytes(insn.all().first(opcode.bytes));
      hot.Bytes({2, 0xeb, 5, 0xe9});
    }
    branches_[branch_count_++] = {hot.at(),
                                  NewEdge(insn.next(), insn.target())};
    hot.Word(0);
  }

  void WriteReturn(const Insn& insn) {
    Code& hot = arena_.hot;
    Save(hot, kRcx);
    hot.Bytes({0x48, 0x8b, 0x0c, 0x24});  // mov rcx, [rsp]
    hot.Bytes({0x48, 0x8d, 0xa4, 0x24});  // lea rsp, [rsp + bytes]
    const uint8_t* operand = insn.bytes + insn.layout.opcode.bytes;
    hot.Word(8u + (insn.layout.immediate_bytes == 2
                       ? operand[0] | static_cast<uint32_t>(operand[1]) << 8
                       : 0u));
    LookUp();
  }

  void WriteSyscall(const Insn& insn) {
    Code& hot = arena_.hot;
    hot.Bytes({0x48, 0x8d, 0x0d});  // lea rcx, [behind the jump]
    hot.Word(5);
    Jump(hot, arena_.call);
    LoadNumber(hot, kRcx, insn.next());  // as SYSCALL leaves it
    Fall(insn.next(), false);
    fragment_.end = FragmentEnd::kCall;
  }

  // To the fragment whose address RCX has; RCX of the program is saved.
  void LookUp() {
    Code& hot = arena_.hot;
    Save(hot, kRax);
    Save(hot, kRdx);
    if (runtime_.has_bmi2) {
      hot.Bytes({0xc4, 0xe2, 0xf2, 0xf5, 0x05});  // pext rax, rcx, [mask]
      hot.Relative(arena_.Number((1u << kLookupBits) - 1));
    } else {
      hot.Bytes({0x0f, 0xb7, 0xc1});  // movzx eax, cx
    }
    hot.Bytes({0x48, 0x8d, 0x04, 0x00});        // lea rax, [rax + rax]
    hot.Bytes({0x65, 0x48, 0x8b, 0x14, 0xc5});  // mov rdx, gs:[rax * 8 + table]
    hot.Word(kLookupAt);
    hot.Bytes({0x48, 0x8d, 0x0c, 0x11});  // lea rcx, [rcx + rdx]
    hot.Bytes({0xe3, 5});                 // jrcxz, over the jump
    Jump(hot, arena_.miss);
    hot.Bytes({0x65, 0xff, 0x24, 0xc5});  // jmp gs:[rax * 8 + table + 8]
    hot.Word(kLookupAt + offsetof(LookupEntry, entry));
    End(FragmentEnd::kIndirect);
  }

  // Ends the fragment, and goes on at `target`.
  void Fall(uint64_t target, bool recorded) {
    WriteEdge(NewEdge(addr_, target), target, recorded);
    fragment_.end_target = target;
    End(recorded ? FragmentEnd::kRecorded : FragmentEnd::kFalls);
  }

  void End(FragmentEnd how) {
    fragment_.end = how;
    ended_ = true;
  }

  // `from` is behind the branch.
  uint32_t NewEdge(uint64_t from, uint64_t to) {
    return AddEdge(
        runtime_, {to, number_, static_cast<uint32_t>(from - fragment_.start)});
  }

  void WriteEdge(uint32_t edge, uint64_t target, bool recorded) {
    Code& hot = arena_.hot;
    uint8_t* go_on = nullptr;
    if (recorded) {
      Save(hot, kRcx);
      go_on = WriteRecord(hot, kTakenEdge | edge);
      Restore(hot, kRcx);
    }
    runtime_.ways[edge] =
        WriteJump(arena_, edge, &ArenaFor(runtime_, target) != &arena_);
    if (recorded) {
      GoOnWhenFull(arena_, go_on);
    }
  }

  void WriteTakenBranches() {
    for (const TakenBranch& branch :
         std::span(branches_).first(branch_count_)) {
      Code displacement(branch.displacement);
      displacement.Relative(AddrOf(arena_.hot.at()));
      WriteEdge(branch.edge, runtime_.edge(branch.edge).target, true);
    }
  }

  // Tells the recorder, and this process.
  void Publish() {
    fragment_.code_bytes = static_cast<uint32_t>(addr_ - fragment_.start);
    fragment_.code_at = Take(runtime_, runtime_.shared->code_bytes,
                             fragment_.code_bytes, kCodeBytesMax);
    const auto* const code = reinterpret_cast<const uint8_t*>(fragment_.start);
    std::copy_n(code, fragment_.code_bytes,
                runtime_.Shared<uint8_t>(kCodeAt) + fragment_.code_at);
    Fragment& published = runtime_.fragment(number_);
    const uint64_t start = std::exchange(fragment_.start, 0);
    published = fragment_;
    __atomic_store_n(&published.start, start, __ATOMIC_RELEASE);
    runtime_.translations[number_].entry = entry_;
    Note(runtime_, number_);
  }

  Runtime& runtime_;
  Arena& arena_;
  uint64_t addr_;
  uint64_t readable_end_;
  uint32_t number_ = 0;
  uint64_t entry_ = 0;
  Fragment fragment_;
  bool ended_ = false;
  std::array<TakenBranch, kBranchesMax> branches_;
  size_t branch_count_ = 0;
};

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
  return end == addr ? 0 : FragmentWriter(runtime, addr, end).Write();
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
