#include "recorder/tracer/runtime/fragment_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "recorder/tracer/runtime/code/code_check.h"
#include "recorder/tracer/runtime/code/copy_insn.h"
#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/versions.h"
#include "recorder/tracer/runtime/ways.h"

namespace clew::tracer {
namespace {

using x86::BranchClass;

constexpr size_t kInsnsMax = 96;
// With a check (code_check.h).
constexpr size_t kInsnsOfCheckedMax = 32;
static_assert(kInsnsOfCheckedMax * x86::kInsnBytesMax * kCheckBytesPerByte <=
              Arena::kCheckBytesMax);
constexpr size_t kBranchesMax = 24;

class FragmentWriter {
 public:
  FragmentWriter(Runtime& runtime, uint64_t start, const Executable& memory,
                 bool always_steps)
      : runtime_(runtime),
        arena_(ArenaFor(runtime, start)),
        addr_(start),
        memory_(memory),
        always_steps_(always_steps) {
    if (!arena_.HasRoom()) {
      Stop(runtime, Fault::kTooManyFragments, start);
    }
    number_ = Take(runtime, runtime.shared->fragments, 1, kFragmentsMax);
    fragment_.start = start;
    fragment_.space = runtime.space;
    fragment_.version = static_cast<uint32_t>(runtime.version.load());
    arena_.hot.AlignTo(8, 0xcc);
    body_ = AddrOf(arena_.hot.at());
  }

  uint32_t Write() {
    const size_t most = memory_.is_writable ? kInsnsOfCheckedMax : kInsnsMax;
    for (size_t insns = 0; !ended_; ++insns) {
      if (insns == most || branch_count_ == kBranchesMax || is_cut_) {
        NoteInsn();
        Fall(addr_, false);
        break;
      }
      WriteNext();
    }
    WriteTakenBranches();
    const std::span<const uint8_t> checked = CheckedCode();
    entry_ = checked.empty()
                 ? body_
                 : WriteCheck(arena_, number_, fragment_.start, checked, body_);
    Publish();
    return number_;
  }

 private:
  // Of a conditional branch: its displacement is to lead to its taken side.
  struct TakenBranch {
    uint8_t* displacement = nullptr;
    uint32_t edge = 0;
  };

  void NoteInsn() {
    insns_[insn_count_++] = {AddrOf(arena_.hot.at()) - body_, kNoRegister};
  }
  void NoteSaved(Register gpr) { insns_[insn_count_ - 1].SetSaved(gpr); }

  void WriteNext() {
    NoteInsn();
    const Insn insn =
        memory_.is_writable ? ReadChanging() : ReadInsn(addr_, memory_.end);
    if (insn.layout.status != x86::LayoutStatus::kWhole) {
      EndAtNone(insn);
      return;
    }
    const bool is_stepped =
        always_steps_ || (runtime_.shared->in_leaps != 0 && IsStepped(insn));
    if (is_stepped || IsUnsupported(insn)) {
      if (addr_ != fragment_.start) {
        Fall(addr_, false);
        return;
      }
      if (!is_stepped) {
        Stop(runtime_, Fault::kUnsupportedInsn, addr_);
      }
      WriteStep();
      return;
    }
    addr_ = insn.next();
    ++program_insns_;
    WriteInsn(insn);
  }

  // What another thread may be writing is read once.
  Insn ReadChanging() {
    for (;;) {
      const Insn seen = ReadInsn(addr_, memory_.end);
      const auto bytes = CopyCode(
          seen.layout.status == x86::LayoutStatus::kWhole
              ? seen.layout.length
              : std::min<uint64_t>(memory_.end - addr_, x86::kInsnBytesMax));
      const Insn insn = ReadInsn(addr_, bytes);
      if (insn.layout.status == seen.layout.status &&
          insn.layout.length == seen.layout.length) {
        return insn;
      }
    }
  }
  // From where it is now; it is what the check compares with.
  std::span<const uint8_t> CopyCode(uint64_t bytes) {
    const uint64_t at = addr_ - fragment_.start;
    std::copy_n(reinterpret_cast<const uint8_t*>(addr_), bytes, &code_[at]);
    copied_bytes_ = at + bytes;
    return std::span(code_).subspan(at, bytes);
  }

  void WriteInsn(const Insn& insn) {
    switch (insn.branch.branch_class) {
      case BranchClass::kNone:
      case BranchClass::kRepString:
        NoteSaved(CopyInsn(arena_.hot, insn));
        is_cut_ = memory_.is_writable && MayWrite(insn);
        if (runtime_.shared->tells_inputs != 0 && IsInput(insn)) {
          WriteTell(insn);
        }
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
        NoteSaved(kRcx);
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
    uint8_t* const displacement = CopyConditional(arena_.hot, insn);
    branches_[branch_count_++] = {displacement,
                                  NewEdge(insn.next(), insn.target())};
  }

  void WriteReturn(const Insn& insn) {
    Save(arena_.hot, kRcx);
    NoteSaved(kRcx);
    PopTarget(arena_.hot, insn);
    LookUp();
  }

  void WriteSyscall(const Insn& insn) {
    Code& hot = arena_.hot;
    Save(hot, kRcx);
    NoteSaved(kRcx);
    hot.Bytes({0x48, 0x8d, 0x0d});  // lea rcx, [behind the jump]
    hot.Word(5);
    Jump(hot, arena_.call);
    LoadNumber(hot, kRcx, insn.next());  // as SYSCALL leaves it
    Fall(insn.next(), false);
    fragment_.end = FragmentEnd::kCall;
  }

  // What it left in the registers is told.
  void WriteTell(const Insn& insn) {
    Code& hot = arena_.hot;
    Save(hot, kRcx);
    hot.Bytes({0x48, 0x8d, 0x0d});  // lea rcx, [behind the jump]
    hot.Word(5);
    Jump(hot, arena_.input);
    LoadNumber(hot, kRcx, insn.addr);  // for the runtime to read
    Restore(hot, kRcx);
  }

  void WriteStep() {
    Code& hot = arena_.hot;
    Save(hot, kRcx);
    hot.Bytes({0x48, 0x8d, 0x0d});  // lea rcx, [number]
    hot.Relative(arena_.Number(addr_));
    Jump(hot, arena_.step);
    End(FragmentEnd::kNowhere);
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
    const uint32_t edge = AddEdge(
        runtime_, {to, number_, static_cast<uint32_t>(from - fragment_.start)});
    runtime_.ways[edge].insns = program_insns_;
    return edge;
  }

  void WriteEdge(uint32_t edge, uint64_t target, bool recorded) {
    Code& hot = arena_.hot;
    uint8_t* go_on = nullptr;
    if (recorded) {
      Save(hot, kRcx);
      go_on = WriteRecord(hot, kTakenEdge | edge);
      Restore(hot, kRcx);
    }
    WriteJump(arena_, edge, &ArenaFor(runtime_, target) != &arena_,
              runtime_.ways[edge]);
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

  // Of what may change, what the copies depend on; where there are none, what
  // is there instead.
  std::span<const uint8_t> CheckedCode() const {
    const uint64_t copied = addr_ - fragment_.start;
    const bool is_all = copied == 0 && !always_steps_;
    return memory_.is_writable
               ? std::span(code_).first(is_all ? copied_bytes_ : copied)
               : std::span<const uint8_t>();
  }

  // Tells the recorder, and this process.
  void Publish() {
    fragment_.code_bytes = static_cast<uint16_t>(addr_ - fragment_.start);
    fragment_.code_at = Take(runtime_, runtime_.shared->code_bytes,
                             fragment_.code_bytes, kCodeBytesMax);
    const auto* const code =
        memory_.is_writable ? code_.data()
                            : reinterpret_cast<const uint8_t*>(fragment_.start);
    std::copy_n(code, fragment_.code_bytes,
                runtime_.Shared<uint8_t>(kCodeAt) + fragment_.code_at);
    Fragment& published = runtime_.fragment(number_);
    const uint64_t start = std::exchange(fragment_.start, 0);
    published = fragment_;
    __atomic_store_n(&published.start, start, __ATOMIC_RELEASE);
    Translation& translation = runtime_.translations[number_];
    translation.body = body_;
    translation.entry = entry_;
    translation.insn_count = static_cast<uint8_t>(insn_count_);
    translation.program_insns = program_insns_;
    translation.insns_at =
        Take(runtime_, runtime_.insn_count, static_cast<uint32_t>(insn_count_),
             kInsnOffsetsMax);
    std::copy_n(insns_.begin(), insn_count_,
                runtime_.insns.begin() + translation.insns_at);
    AddToArena();
    NotePage(runtime_, number_);
  }

  void AddToArena() {
    const size_t arena = &arena_ == runtime_.arenas.data() ? 0 : 1;
    runtime_.fragments_of_arena[arena][runtime_.fragment_counts[arena]++] =
        number_;
  }

  Runtime& runtime_;
  Arena& arena_;
  uint64_t addr_;
  Executable memory_;
  bool always_steps_;
  uint32_t number_ = 0;
  uint64_t body_ = 0;
  uint64_t entry_ = 0;
  Fragment fragment_;
  bool ended_ = false;
  bool is_cut_ = false;  // what follows may have become other code
  // Of code that may change, as it was read.
  std::array<uint8_t, (kInsnsOfCheckedMax + 1) * x86::kInsnBytesMax> code_;
  uint64_t copied_bytes_ = 0;
  std::array<TakenBranch, kBranchesMax> branches_;
  size_t branch_count_ = 0;
  std::array<InsnOffset, kInsnsMax + 1> insns_;
  size_t insn_count_ = 0;
  uint8_t program_insns_ = 0;
};

}  // namespace

uint32_t WriteFragment(Runtime& runtime, uint64_t start,
                       const Executable& memory, bool always_steps) {
  return FragmentWriter(runtime, start, memory, always_steps).Write();
}

}  // namespace clew::tracer
