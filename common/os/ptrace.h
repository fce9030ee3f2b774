#ifndef CLEW_COMMON_OS_PTRACE_H_
#define CLEW_COMMON_OS_PTRACE_H_

#include <signal.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/child_ends.h"
#include "common/result.h"
#include "common/units.h"

namespace clew {

// Why a traced thread stopped, or that it did not.
struct TraceeStop {
  enum class Kind : uint8_t {
    kRunning,  // it has not stopped
    kTrap,     // after a single step
    kSignal,   // about to receive `signal`
    kClone,    // inside clone(); `new_thread` exists and is stopped
    // Inside fork(), vfork() or their like: `new_thread` is the first of a
    // process, which exists and is traced and stopped, until LetGo.
    kFork,
    kExec,    // inside execve(); the program is another one
    kExited,  // the thread ended with `exit_status`
    kKilled,  // the process was ended by `signal`
  };
  Kind kind = Kind::kRunning;
  int signal = 0;
  int exit_status = 0;
  Tid new_thread;
  // Of a process that was attached to: a kTrap without a signal, as the thread
  // was interrupted or has just begun.
  bool is_without_signal = false;

  bool has_ended() const {
    return kind == Kind::kExited || kind == Kind::kKilled;
  }
};

// How a program is started to be traced.
struct TraceeLaunch {
  std::string program;                   // its file
  std::vector<std::string> arguments;    // argv
  std::vector<std::string> environment;  // "NAME=value"
  // The program and the calling thread are bound to it: then a step costs a
  // third. nullopt: neither is bound.
  std::optional<int> host_cpu = 0;
  // A SIGTRAP that no step brought about (the program's own breakpoint, or sent
  // to it) is told as kSignal; else every one is a kTrap.
  bool tell_traps = false;
  // Called in the child before execve; only what is safe after fork. Returns
  // whether to go on. May be null.
  std::function<bool()> prepare;
};

// A process that waits to be traced by another one, and what it goes on with.
struct HandedOver {
  int32_t process = 0;
  user_regs_struct registers = {};
  uint64_t signal_mask = 0;
};

// A process that this one traces, with all its threads: one that it started,
// which is killed and reaped when this is destroyed, or one that it attached
// to, which goes on then as it is. (If this process dies instead, a thread that
// was stepped last ends by SIGTRAP: the kernel leaves the trap flag set.)
// Moves.
//
// All calls must come from the thread that called Start or Attach (as ptrace
// wants it).
// Errors are kSystem unless a line says otherwise.
class TracedProcess {
 public:
  // Starts a program at fixed addresses (no randomisation). Returns once it is
  // at its first instruction.
  [[nodiscard]] static Result<TracedProcess> Start(const TraceeLaunch& launch);
  // Attaches to a process that runs. Returns once all of its threads are
  // stopped, each in user mode or where a system call that the stop interrupted
  // returns; signals that they were about to receive were delivered. A trap
  // counts as with TraceeLaunch::tell_traps. kInvalidArgument: there is no such
  // process, it is stopped, or its first thread has ended. kUnsupported: its
  // seccomp(2) filters could end it for what it is made to do (SetFilters).
  // kSystem: ptrace(2) is refused.
  [[nodiscard]] static Result<TracedProcess> Attach(int32_t process);
  // Attaches to a process that was handed over to this one, and goes on from
  // where it was then. Fails as Attach does.
  [[nodiscard]] static Result<TracedProcess> TakeOver(const HandedOver& from);
  TracedProcess(TracedProcess&& other) noexcept;
  TracedProcess& operator=(TracedProcess&& other) noexcept;
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;
  ~TracedProcess();

  // The process and its first thread have the same number.
  int32_t process() const { return process_; }
  bool is_attached() const { return attached_; }
  // Whether some thread of a process that was attached to had filters of system
  // calls that this process has not.
  bool has_filters() const { return has_filters_; }
  Tid first_thread() const { return Tid(process_); }
  // All that have not been reaped, by number.
  std::vector<Tid> Threads() const;

  // Lets a stopped thread execute one instruction; `signal` is delivered first
  // unless 0.
  [[nodiscard]] Status SingleStep(Tid thread, int signal);
  // Lets a stopped thread run; `signal` is delivered first unless 0.
  [[nodiscard]] Status Continue(Tid thread, int signal);
  // Lets a thread that is stopped at the SYSCALL of an execve make it. kExec:
  // the process has its first thread alone, which is at the first instruction
  // of the new program. Otherwise the call failed, and the thread stopped as
  // after a step; or it was killed.
  [[nodiscard]] Result<TraceeStop> Execute(Tid thread);
  // Lets a stopped process that has one thread run to its execve. kExec: it is
  // at the first instruction of the new program; kExited, kKilled: it ended
  // before.
  [[nodiscard]] Result<TraceeStop> RunToExec();
  // Counts a process as one of the threads from here on that kFork told of and
  // that has this one's memory.
  void AddSharing(Tid process) { threads_.insert(process.as_int()); }
  // Traces a process no longer that kFork told of and whose stop was waited
  // for.
  [[nodiscard]] Status LetGo(Tid process);
  // Likewise; but it sleeps, and no signal comes to it but SIGKILL, until
  // process `tracer` takes it over. REQUIRES: its thread is behind a SYSCALL.
  // An error: it is traced and stopped as before.
  [[nodiscard]] Result<HandedOver> HandOver(Tid process, int32_t tracer);
  // Traces a stopped thread no longer, which goes on; `signal` is delivered
  // unless 0.
  [[nodiscard]] Status Detach(Tid thread, int signal);
  // Makes a thread stop that is not stopped, and waits for that.
  [[nodiscard]] Result<TraceeStop> Interrupt(Tid thread);
  // Waits for the next stop of `thread`; with `may_block` clear, kRunning if
  // there is none yet.
  [[nodiscard]] Result<TraceeStop> Wait(Tid thread, bool may_block);
  // Waits until `thread`, which is in a system call, stops; nullopt: it sleeps
  // there, and was looked at `looks` times before.
  [[nodiscard]] Result<std::optional<TraceeStop>> WaitOrAsleep(Tid thread,
                                                               int looks);
  // Likewise in a call that does not often wait, as open(2) of a FIFO does;
  // nullopt: it has slept there for a tenth of a second.
  [[nodiscard]] Result<std::optional<TraceeStop>> WaitOrLongAsleep(Tid thread);
  // How often a thread that has begun a system call is looked at before it
  // counts as asleep if the kernel says so.
  static constexpr int kLooksBeforeAsleep = 20;
  // True if the kernel has the thread asleep, or keeps it after its end until
  // all others have ended.
  [[nodiscard]] bool IsAsleep(Tid thread) const;

  [[nodiscard]] Result<user_regs_struct> Registers(Tid thread) const;
  // Of the signal that the thread is about to receive.
  [[nodiscard]] Result<siginfo_t> SignalInfo(Tid thread) const;
  [[nodiscard]] Status SetSignalInfo(Tid thread, const siginfo_t& info);
  [[nodiscard]] Status SetRegisters(Tid thread,
                                    const user_regs_struct& registers);
  // Lets the seccomp(2) filters of a stopped thread, which was attached to and
  // has other ones than this process, not hold for a while: for calls that are
  // not the program's. Others have none, or are let have them.
  [[nodiscard]] Status SetFilters(Tid thread, bool hold);
  // Makes a system call in a stopped thread, by a SYSCALL that lies at `insn`
  // in the program, whatever its filters say. Returns its result, an error as
  // -errno; the registers are as before. kUnsupported: the program was ended.
  [[nodiscard]] Result<int64_t> MakeCall(Tid thread, TraceeAddr insn,
                                         uint64_t number,
                                         const std::array<uint64_t, 6>& args);
  [[nodiscard]] Result<TraceeAddr> InsnPointer(Tid thread) const;
  // x87 and vector registers: an XSAVE area in the standard format.
  [[nodiscard]] Result<std::vector<std::byte>> ExtendedState(Tid thread) const;
  [[nodiscard]] Status SetExtendedState(Tid thread,
                                        std::span<const std::byte> state);
  // The signals that a thread blocks, a bit each, from signal 1 on.
  [[nodiscard]] Result<uint64_t> SignalMask(Tid thread) const;
  [[nodiscard]] Status SetSignalMask(Tid thread, uint64_t mask);
  // What a thread has registered by rseq(2); an `addr` of 0: nothing.
  struct Rseq {
    uint64_t addr = 0;
    uint32_t size_bytes = 0;
    uint32_t signature = 0;
  };
  [[nodiscard]] Result<Rseq> RegisteredRseq(Tid thread) const;
  // The function of the kernel that a thread waited in when it was attached to
  // (proc(5), wchan); empty where the kernel does not say.
  [[nodiscard]] std::string WaitedIn(Tid thread) const;
  // Reads as much of `bytes` as is mapped from `addr` on; returns how much.
  [[nodiscard]] size_t ReadMemory(TraceeAddr addr,
                                  std::span<uint8_t> bytes) const;
  // What /proc/<pid>/`name` says ("maps"); empty if it says nothing.
  [[nodiscard]] std::string ProcText(std::string_view name) const;
  // Likewise /proc/<tid>/task/<tid>/`name` ("status"), of a thread of this
  // process or of another one that is traced.
  [[nodiscard]] static std::string ThreadText(Tid thread,
                                              std::string_view name);

 private:
  TracedProcess(int32_t process, bool tell_traps, bool attached)
      : process_(process), tell_traps_(tell_traps), attached_(attached) {}
  [[nodiscard]] Status StopAll();
  [[nodiscard]] Status LookAtFilters();
  [[nodiscard]] Status Seize(Tid thread);
  [[nodiscard]] Status StopSeized(Tid thread);
  void LetAllGo();
  bool IsTrapPending(Tid thread) const;
  char StateOf(Tid thread) const;  // ProcessState
  [[nodiscard]] Status FinishExec(const std::string& name);
  [[nodiscard]] Status EnterProgram();
  void Note(Tid thread, const TraceeStop& stop);
  [[nodiscard]] Result<std::optional<TraceeStop>> Look(Tid thread, int options);
  [[nodiscard]] Result<TraceeStop> WaitForFirst();

  int32_t process_ = 0;  // 0: nothing to end
  bool tell_traps_ = false;
  bool attached_ = false;
  bool has_filters_ = false;   // that this process has not
  std::set<int32_t> threads_;  // not reaped yet
  // Of a process of several threads: WaitForFirst.
  std::unique_ptr<ChildEnds> ends_ = std::make_unique<ChildEnds>();
  uint32_t ends_seen_ = ChildEnds::count();
  std::map<int32_t, std::string> waited_in_;
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_PTRACE_H_
