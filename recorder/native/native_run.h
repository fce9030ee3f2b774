#ifndef CLEW_RECORDER_NATIVE_NATIVE_RUN_H_
#define CLEW_RECORDER_NATIVE_NATIVE_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.h"
#include "recorder/native/native_calls.h"
#include "recorder/native/native_signals.h"
#include "recorder/native/native_state.h"
#include "recorder/native/native_waits.h"
#include "recorder/native/program_run.h"
#include "recorder/native/ran_code.h"
#include "recorder/qemu/scheduler.h"

namespace clew::recorder {

// Steps a program from where it is to its end.
class NativeRun final : public ProgramRun {
 public:
  // `state` outlives this, and has the threads that there are.
  explicit NativeRun(NativeState& state);

  [[nodiscard]] Result<std::optional<NativeEnd>> Run() override;
  Status Finish(Outcome& /*outcome*/) override { return {}; }
  Status Leave(const std::vector<Attachment::Stopped>& threads) override;
  uint64_t handovers() const override { return handovers_; }

 private:
  [[nodiscard]] Status WakeSleepers(bool may_have_woken);
  [[nodiscard]] Status RunTurn(NativeThread& thread, uint64_t insns);
  void NoteGone(NativeThread& thread);
  void Begin(NativeThread& thread, uint32_t core);
  void Preempt(NativeThread& thread);
  void HoldBack(NativeThread& thread);
  void Idle();
  [[nodiscard]] Result<After> Step(NativeThread& thread);
  uint64_t LeapOf(const NativeThread& thread, uint64_t left) const;
  [[nodiscard]] Status RunLeap(NativeThread& thread, uint64_t insns);
  [[nodiscard]] Status Follow(NativeThread& thread, const CodeStretch& stretch);
  void RetireFollowed(NativeThread& thread, uint64_t next_ip);
  void EnterUserMode(NativeThread& thread);
  [[nodiscard]] Status ShowVersion(NativeThread& thread, uint64_t version);
  [[nodiscard]] Result<After> StepNear(NativeThread& thread,
                                       const NativeInsn& insn);
  [[nodiscard]] Status LetSseBeInUse(const NativeThread& thread);
  [[nodiscard]] Result<After> StepWithShownComponents(NativeThread& thread,
                                                      const NativeInsn& insn);
  void Retire(NativeThread& thread, x86::BranchClass branch_class,
              TraceeAddr fall_through, uint64_t next_ip);
  [[nodiscard]] Result<bool> Emulate(NativeThread& thread,
                                     const NativeInsn& insn);
  // The results of the instruction at thread.ip.
  void RecordInsn(NativeThread& thread, const user_regs_struct& registers);
  [[nodiscard]] Status HideTrapFlag(const NativeThread& thread,
                                    const NativeInsn& insn);
  bool AllWaitForever() const;
  bool TimeIsOver() const;
  uint64_t InsnsUntilLimit() const;
  bool IsToldToEnd() const;

  NativeState& state_;
  Scheduler scheduler_;
  std::vector<uint64_t> versions_shown_;  // of code, by core
  NativeWaits waits_;
  NativeCalls calls_;
  NativeSignals signals_;
  uint64_t handovers_ = 0;
  const NativeThread* last_ = nullptr;  // that ran
  uint64_t idle_ns_ = 0;
  RanCode ran_code_;
  std::optional<LastInsn> followed_;  // of a leap
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_RUN_H_
