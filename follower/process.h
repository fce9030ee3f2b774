#ifndef CLEW_FOLLOWER_PROCESS_H_
#define CLEW_FOLLOWER_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "common/sent_signals.h"
#include "common/stream.h"
#include "follower/channels.h"
#include "follower/engine.h"
#include "follower/futex.h"
#include "follower/tape.h"
#include "follower/undo_log.h"
#include "machine/cpu.h"
#include "machine/memory.h"
#include "machine/registers.h"
#include "machine/store_buffer.h"

namespace clew::follower {

// The schedule so far is not what happened: the machine's next step differs
// from what was recorded.
struct Contradiction {
  enum class Kind : uint8_t {
    kPath,     // the next instruction is not the recorded one
    kSyscall,  // another system call, or other arguments
    kFutex,    // a recorded futex result is impossible now
    kFault,    // a fault that was not recorded, or none where one was
    kOutput,   // other output bytes (only with ProcessOptions::strict_output)
  };
  Kind kind = Kind::kPath;
  size_t thread = 0;  // index
  Tid tid;
  uint64_t insn_index = 0;  // instructions the thread had retired
  uint64_t ip = 0;          // where the machine is
  std::string text;         // for people, without the place
};

// Whether a step went as it was recorded.
enum class Followed : uint8_t {
  kAsRecorded,
  kContradiction,  // Process::contradiction() says which
};

enum class ThreadPhase : uint8_t {
  kNotCreated,
  kRunning,  // in user mode
  kInCall,   // a system call was entered; its return comes with the next
             // instruction
  kGone,     // exited
};

// Everything of one thread that changes; small enough to copy for an undo.
struct ThreadState {
  machine::Registers registers;
  uint64_t retired = 0;     // instructions since its first recorded one
  uint64_t block = 0;       // position of the current block on the tape
  uint32_t block_done = 0;  // instructions of it that have retired
  uint64_t input = 0;       // position of the next input record
  ThreadPhase phase = ThreadPhase::kNotCreated;
  // kInCall: futex word it sleeps on, or 0; of a channel, an address that no
  // memory has.
  uint64_t wait_addr = 0;
  bool needs_wake = false;  // kInCall: may return only when another has acted
  machine::HeldBuffer buffer;  // where its stores wait; none without a model
  Channels::Taking taking;     // kInCall: what it takes from a channel
};

struct Advance {
  enum class Stop : uint8_t {
    kReached,        // the thread has retired `until_insn` instructions
    kBlocked,        // not created yet, or waits until another thread acts:
                     // asleep, or the signal that it handles next is not sent
    kStreamEnded,    // nothing more is recorded of the thread
    kContradiction,  // Process::contradiction() says which
    kObserver,       // the access observer asked to stop
  };
  Stop stop = Stop::kReached;
  uint64_t insns_retired = 0;
};

struct ProcessOptions {
  // Different output bytes are a contradiction; otherwise they are counted.
  bool strict_output = false;
  // Goes on along the recorded path wherever the machine differs, and never
  // sleeps: values may then be wrong, but most addresses are right. For finding
  // out which memory is shared before any schedule is known.
  bool force_path = false;
  // nullptr: sequential consistency. Borrowed.
  const machine::MemoryModel* model = nullptr;
};

// Receives what the program wrote, as it is written.
using OutputSink =
    std::function<void(Tid thread, int fd, std::span<const std::byte> bytes)>;

// A recorded process on the machine: threads, memory, and the kernel's effects
// from the input log. Each thread follows its recorded stream; who runs when is
// the caller's choice, an instruction at a time if need be. Under a memory
// model the buffers in which stores wait may run, too (machine/store_buffer.h):
// actors are the threads, and behind them their buffers, where there are any.
//
// Promise: the same sequence of Run calls gives the same states on every host.
// A copy is a checkpoint (memory pages are shared until written; the tape is
// shared). Not thread-safe, not even across copies.
class Process {
 public:
  // `tape` and `code` are borrowed and must outlive the process and its copies.
  // kCorruptInput: the start state does not fit the streams.
  [[nodiscard]] static Result<Process> Start(const StartState& start,
                                             Tape& tape,
                                             machine::CodeCache& code,
                                             ProcessOptions options = {});

  // A copy with ProcessOptions::force_path.
  Process Forced() const;
  // A copy without a memory model: what runs it steps threads alone.
  // REQUIRES: no store waits.
  Process SequentiallyConsistent() const;

  size_t thread_count() const { return threads_.size(); }
  Tid tid(size_t thread) const { return tape_->tid(thread); }
  const ThreadState& thread(size_t thread) const { return threads_[thread]; }
  const machine::Memory& memory() const { return memory_; }
  machine::Memory& mutable_memory() { return memory_; }
  Tape& tape() const { return *tape_; }

  // Runs `thread` until it has retired `until_insn` instructions in all, or
  // something stops it. A system call that may sleep returns with the thread's
  // next instruction, any other one at once. After a contradiction the state is
  // that of the moment before the step that contradicts.
  // Errors: kUnsupported (an instruction or system call the machine does not
  // know, a gap), kLimit (tape).
  [[nodiscard]] Result<Advance> Run(size_t thread, uint64_t until_insn);

  // Takes one step of a schedule, of a thread or of its buffer, as Run. Of a
  // buffer that has nothing left to do it is kReached as well.
  [[nodiscard]] Result<Advance> Take(size_t thread, const ScheduleStep& step);

  // Twice thread_count() under a memory model with buffers.
  size_t actor_count() const;
  Actor actor(size_t number) const;
  // The store with which the thread's buffer would go on; nullopt: none waits.
  std::optional<machine::WaitingStore> OldestStore(size_t thread) const;

  // The block that holds the thread's next instruction, or nullptr at the end
  // of its stream. Holds until the tape is used again.
  [[nodiscard]] Result<const StreamBlock*> NextBlock(size_t thread) const;
  // Whether NextBlock needs no decoding.
  bool NextIsOnTape(size_t thread) const {
    return tape_->HasBlock(thread, threads_[thread].block);
  }
  // NextBlock would need decoding, and is known to begin after `tick`.
  bool NextIsAfter(size_t thread, double tick) const {
    return !NextIsOnTape(thread) && tape_->NoneUntil(thread, tick);
  }
  // Whether Run would make progress (created, not asleep, stream not ended).
  [[nodiscard]] Result<bool> CanRun(size_t thread) const;

  // Whether every stream has ended, and no store waits.
  [[nodiscard]] Result<bool> AllEnded() const;

  // Compares the end of the run with the recorded failure: the faulting
  // instruction brings about the same signal by the same access; of a signal
  // that was sent, the place is the same. REQUIRES: the streams of all threads
  // have ended. nullopt: it agrees.
  [[nodiscard]] Result<std::optional<Contradiction>> CheckFailure(
      const Failure& failure);

  const Contradiction& contradiction() const { return contradiction_; }

  // Runs the instructions instead of the concrete machine; nullptr: none.
  // Borrowed; copies of the process must not keep it.
  void set_engine(Engine* engine) { engine_ = engine; }
  machine::Registers& mutable_registers(size_t thread) {
    return threads_[thread].registers;
  }

  // Sees the data accesses of every thread, and what system calls do: a futex
  // call is a read-modify-write of its word by the SYSCALL instruction, what a
  // call is given to read (SyscallInput::read_digest) are reads by it, other
  // kernel writes are writes by it, or by the next instruction where the call
  // may sleep. nullptr: none.
  void set_observer(machine::AccessObserver* observer) { observer_ = observer; }
  // Run stops (kBlocked) where the thread has fallen asleep on a futex, even if
  // there is a wake already that it may take.
  void set_stops_asleep(bool stops) { stops_asleep_ = stops; }
  void set_output_sink(OutputSink sink) { output_ = std::move(sink); }

  // Undo in LIFO order. Between SetMark and RollBack every change of threads,
  // memory and futexes is logged. Copies start without marks.
  using Mark = size_t;
  Mark SetMark();
  void RollBack(Mark mark);
  void DropMarks();

  // Equal states have equal digests (memory, registers, positions), however
  // they were reached. REQUIRES: mutable_memory().EnableDigest() was called.
  uint64_t StateDigest() const;

  uint64_t outputs_differing() const { return outputs_differing_; }
  uint64_t retired_total() const { return retired_total_; }

 private:
  class ThreadCpu;
  struct UndoEntry {
    size_t thread;
    ThreadState state;
    std::optional<FutexTable> futexes;   // if the step touched them
    std::optional<Channels> channels;    // the same
    std::optional<SentSignals> signals;  // the same
    uint64_t brk;
    uint64_t outputs_differing;
    uint64_t retired_total;
  };
  Process(Tape& tape, machine::CodeCache& code, ProcessOptions options);

  // One call each of Run's loop.
  Result<std::optional<Advance::Stop>> BeginBlock(size_t thread);
  Result<std::optional<Advance::Stop>> RunInBlock(size_t thread, ThreadCpu& cpu,
                                                  uint64_t until_insn);
  Result<std::optional<Advance::Stop>> EndBlock(size_t thread,
                                                const StreamBlock& block);
  // Signals (follower/process_signals.cc).
  Result<Followed> DeliverSignals(size_t thread, const StreamBlock& block);
  Result<size_t> SignalsUntil(size_t thread, TraceeAddr handler) const;
  Result<bool> WereSent(size_t thread, size_t signals) const;
  Result<bool> AwaitsSignal(size_t thread, const StreamBlock& block) const;
  Status EnterHandler(size_t thread);
  void EnterSentSignals(const SyscallInput& call);
  Result<Followed> CompleteNondeterministic(size_t thread, ThreadCpu& cpu);
  void Flush(size_t thread, uint64_t until_insn);
  void DrainBuffer(size_t thread);

  // System calls (follower/process_syscalls.cc); what has no state of the
  // process stands beside it (follower/call_*.h).
  Result<Followed> EnterSyscall(size_t thread);
  Result<Followed> EnterFutex(size_t thread, const SyscallInput& call);
  Result<Followed> FinishCall(size_t thread, const SyscallInput& call);
  Followed CheckCall(size_t thread, const SyscallInput& call);
  Followed CheckOutput(size_t thread, const SyscallInput& call);
  Status ObserveSyscall(size_t thread, uint64_t insn_offset);
  Status ApplyWrites(size_t thread, std::span<const MemoryWrite> writes);
  Status CreateThread(size_t parent, Tid child_tid, const SyscallInput& call);
  void Exit(size_t thread, const SyscallInput& call);
  Result<Followed> ReturnFromCall(size_t thread);

  // The end (follower/process_failure.cc).
  Result<bool> SentSignal(size_t thread, const Failure& failure) const;
  bool TouchesPage(size_t thread, uint64_t addr) const;
  std::optional<Contradiction> Otherwise(size_t thread, const Failure& failure,
                                         const machine::Fault& fault);

  Result<std::optional<Advance::Stop>> ForceOn(size_t thread,
                                               const StreamBlock& block);
  Followed Contradict(Contradiction::Kind kind, size_t thread,
                      std::string text);
  void SaveForUndo(size_t thread);
  void PutBack(UndoEntry& saved);
  void EnterChannels(size_t thread, const SyscallInput& call);
  void ReturnToChannels(const SyscallInput& call);
  bool MayReturn(const ThreadState& state) const;

  Tape* tape_;
  machine::CodeCache* code_;
  ProcessOptions options_;
  machine::Memory memory_;
  std::vector<ThreadState> threads_;
  FutexTable futexes_;
  Channels channels_;
  // No part of StateDigest: how many were sent and handled follows from how far
  // each thread is.
  SentSignals signals_{Tid(0)};
  uint64_t brk_ = 0;
  Contradiction contradiction_;
  machine::AccessObserver* observer_ = nullptr;
  Engine* engine_ = nullptr;
  bool stops_asleep_ = false;
  OutputSink output_;
  uint64_t outputs_differing_ = 0;
  uint64_t retired_total_ = 0;
  UndoLog<UndoEntry, machine::Memory::Mark> undo_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_PROCESS_H_
