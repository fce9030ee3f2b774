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
#include "common/stream.h"
#include "follower/engine.h"
#include "follower/kernel/kernel_objects.h"
#include "follower/tape.h"
#include "follower/undo_log.h"
#include "machine/cpu.h"
#include "machine/memory.h"
#include "machine/registers.h"
#include "machine/store_buffer.h"

namespace clew::follower {

class CallObserver;  // follower/kernel/call_observer.h
struct NewThread;    // follower/kernel/new_thread.h

// The schedule so far is not what happened: the machine's next step differs
// from what was recorded.
struct Contradiction {
  enum class Kind : uint8_t {
    kPath,     // the next instruction is not the recorded one
    kSyscall,  // another system call, or other arguments
    kFutex,    // a recorded futex result is impossible now
    kFault,    // a fault that was not recorded, or none where one was
    kOutput,   // other output bytes (only with ProcessOptions::strict_output)
    kNoInput,  // the input log of the thread has ended, the thread goes on
  };
  Kind kind = Kind::kPath;
  size_t thread = 0;  // index
  Tid tid;
  uint64_t insn_index = 0;  // instructions the thread had retired
  uint64_t ip = 0;          // where the machine is
  uint64_t inputs = 0;  // input records of it so far, with the call it is in
  std::string text;     // for people, without the place
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
  // Of the registers, once it was asked for since they last changed.
  mutable std::optional<uint64_t> registers_digest;
  uint64_t retired = 0;     // instructions since its first recorded one
  uint64_t block = 0;       // position of the current block on the tape
  uint32_t block_done = 0;  // instructions of it that have retired
  uint64_t input = 0;       // position of the next input record
  ThreadPhase phase = ThreadPhase::kNotCreated;
  uint64_t rseq_addr = 0;    // of its struct rseq; 0: none is registered
  bool rseq_is_new = false;  // the kernel has not written there yet
  // Of a process that has the recorded one's memory, but other descriptors.
  bool is_child_process = false;
  Wait wait;                   // kInCall: what it waits for
  uint32_t slice = 0;          // of the last instruction
  machine::HeldBuffer buffer;  // where its stores wait; none without a model
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
// actors are the threads, and after them their buffers, where there are any.
//
// Promise: the same sequence of Run calls gives the same states on every host.
// A copy is a checkpoint (memory pages are shared until written; the tape is
// shared). Not thread-safe, not even across copies.
class Process {
 public:
  // Makes the process at its first recorded instruction. `tape` and `code` are
  // borrowed and must outlive it and its copies. Fails with kCorruptInput if
  // the start state does not fit the streams.
  [[nodiscard]] static Result<Process> Start(const StartState& start,
                                             Tape& tape,
                                             machine::CodeCache& code,
                                             ProcessOptions options = {});

  // Returns a copy with ProcessOptions::force_path, in which no thread waits.
  Process Forced() const;
  // Returns a copy without a memory model: what runs it steps threads alone.
  // REQUIRES: no store waits.
  Process SequentiallyConsistent() const;

  size_t thread_count() const { return threads_.size(); }
  // Of the recorded CPU.
  x86::FeatureSet cpu_features() const { return code_->features(); }
  Tid tid(size_t thread) const { return tape_->tid(thread); }
  const ThreadState& thread(size_t thread) const { return threads_[thread]; }
  const machine::Memory& memory() const { return memory_; }
  machine::Memory& mutable_memory() { return memory_; }
  Tape& tape() const { return *tape_; }

  // Runs `thread` until it has retired `until_insn` instructions in all, or
  // something stops it. A system call that may sleep returns with the thread's
  // next instruction, any other one at once. After a contradiction the state is
  // that of the moment before the step that contradicts. Fails with
  // kUnsupported if the machine does not know an instruction or a futex
  // command, if a signal frame is not mapped, or at a gap or an unknown input;
  // with kLimit if the tape is full; and as the tape's sources do.
  [[nodiscard]] Result<Advance> Run(size_t thread, uint64_t until_insn);

  // Takes one step of a schedule, of a thread or of its buffer, as Run does.
  // The step of a buffer that has nothing left to do is kReached as well.
  [[nodiscard]] Result<Advance> Take(size_t thread, const ScheduleStep& step);

  // Returns how many queues the buffer of each thread has; 0: none waits, under
  // sequential consistency.
  uint32_t queues() const {
    return options_.model == nullptr ? 0 : options_.model->queues();
  }
  // Returns thread_count(), and under a memory model as many more as there are
  // queues.
  size_t actor_count() const;
  Actor actor(size_t number) const;
  // Returns the store with which a queue of the thread's buffer would go on;
  // nullopt if none waits there. REQUIRES for a memory model: queue <
  // MemoryModel::queues().
  std::optional<machine::WaitingStore> OldestStore(size_t thread,
                                                   uint32_t queue) const;
  // The same of the buffer, all queues together.
  std::optional<machine::WaitingStore> OldestStore(size_t thread) const;
  // Returns whether that store may leave before those of other queues.
  bool MayLeave(size_t thread, uint32_t queue) const;
  // Returns whether a store of the thread waits.
  bool StoresWait(size_t thread) const {
    const machine::StoreBuffer* const buffer = threads_[thread].buffer.get();
    return buffer != nullptr && !buffer->Empty();
  }
  // Returns whether the thread goes on only once stores of it have left: its
  // buffer is full, or it comes to a fence, a locked instruction, a system
  // call, a signal or another slice (the kernel has switched).
  [[nodiscard]] Result<bool> WaitsToDrain(size_t thread) const;
  // Fills in what the thread itself reads where its stores wait. `bytes` are
  // what memory has from `addr` on.
  void Forward(size_t thread, uint64_t addr, std::span<std::byte> bytes) const;

  // Returns the block that holds the thread's next instruction, or nullptr at
  // the end of its stream. The pointer holds until the tape is used again.
  // Fails as Tape::Block does.
  [[nodiscard]] Result<const StreamBlock*> NextBlock(size_t thread) const;
  // Returns whether NextBlock needs no decoding.
  bool NextIsOnTape(size_t thread) const {
    return tape_->HasBlock(thread, threads_[thread].block);
  }
  // Returns whether the thread is known never to run, as it is now: it has not
  // begun, has ended, or nothing more is recorded of it.
  bool IsOut(size_t thread) const {
    const ThreadState& state = threads_[thread];
    return state.phase == ThreadPhase::kNotCreated ||
           state.phase == ThreadPhase::kGone ||
           tape_->EndsBefore(thread, state.block);
  }
  // Returns a time before which no block begins that needs decoding.
  TscTicks NextNotBefore(size_t thread) const {
    return tape_->NotBefore(thread);
  }
  // Returns whether NextBlock would need decoding and is known to begin after
  // `tick`.
  bool NextIsAfter(size_t thread, double tick) const {
    return !NextIsOnTape(thread) && tape_->NoneUntil(thread, tick);
  }
  // Returns whether Run would make progress: the thread is created, its stream
  // has not ended, and it waits neither in a call nor for a signal. Fails as
  // NextBlock does.
  [[nodiscard]] Result<bool> CanRun(size_t thread) const;

  // Returns whether every stream has ended and no store waits. Fails as
  // NextBlock does.
  [[nodiscard]] Result<bool> AllEnded() const;

  // Executes one more instruction of a thread, whatever is recorded of it, and
  // returns how the machine stopped: an instruction that fails comes after the
  // end of its thread's stream. The thread's position does not change.
  machine::Stop ExecuteUnrecorded(size_t thread);

  const Contradiction& contradiction() const { return contradiction_; }

  // Sets what runs the instructions instead of the concrete machine; nullptr:
  // the machine does. `engine` is borrowed; copies of the process must not keep
  // it.
  void set_engine(Engine* engine) { engine_ = engine; }
  // Returns the registers for a change before StateDigest is asked again, or,
  // by an engine, within Run. What is changed otherwise StateDigest may miss.
  machine::Registers& mutable_registers(size_t thread) {
    threads_[thread].registers_digest.reset();
    return threads_[thread].registers;
  }

  // Sets what sees the data accesses of every thread, and what system calls do:
  // a futex call is a read-modify-write of its word by the SYSCALL instruction,
  // what a call is given to read (SyscallInput::read_digest) are reads by it,
  // other kernel writes are writes by it, or by the next instruction where the
  // call may sleep. nullptr: nothing sees them.
  void set_observer(machine::AccessObserver* observer) { observer_ = observer; }
  // Sets what sees the calls of every thread; nullptr: nothing does.
  void set_call_observer(CallObserver* observer) { call_observer_ = observer; }
  // Makes Run stop (kBlocked) where the thread has fallen asleep on a futex,
  // even if there is a wake already that it may take.
  void set_stops_asleep(bool stops) { stops_asleep_ = stops; }
  // Makes Run stop (kBlocked) where WaitsToDrain; otherwise the stores leave
  // there, as part of the thread's step.
  void set_stops_to_drain(bool stops) { stops_to_drain_ = stops; }
  void set_output_sink(OutputSink sink) { output_ = std::move(sink); }

  // These undo in LIFO order. Between SetMark and RollBack every change of
  // threads, memory and kernel objects is logged. Copies start without marks.
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
    uint64_t brk;
    bool has_detached;
    uint64_t outputs_differing;
    uint64_t retired_total;
    size_t refusals_unseen;
  };
  Process(Tid id, Tape& tape, machine::CodeCache& code, ProcessOptions options);

  [[nodiscard]] Status BeginThreads(const StartState& start);

  // The parts of Run's loop.
  Result<std::optional<Advance::Stop>> BeginBlock(size_t thread);
  Result<std::optional<Advance::Stop>> RunInBlock(size_t thread, ThreadCpu& cpu,
                                                  uint64_t until_insn);
  Result<std::optional<Advance::Stop>> EndBlock(size_t thread,
                                                const StreamBlock& block);
  // Signals (follower/process_signals.cc).
  Result<Followed> DeliverSignals(size_t thread, const StreamBlock& block);
  Result<bool> AwaitsSignal(size_t thread, const StreamBlock& block) const;
  Status EnterHandler(size_t thread);
  Result<Followed> CompleteNondeterministic(size_t thread, ThreadCpu& cpu);
  Result<InsnInput> ToldInput(size_t thread);
  void Flush(size_t thread, const ScheduleStep& step);
  Result<bool> EntersKernel(size_t thread) const;
  void DrainBuffer(size_t thread);

  // System calls (follower/process_syscalls.cc); what has no state of the
  // process stands beside it (follower/call_*.h).
  Result<Followed> EnterSyscall(size_t thread);
  Result<Followed> EnterFutex(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexWait(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexWake(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexRequeue(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexWakeOp(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexLock(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexTryLock(size_t thread, const SyscallInput& call);
  Result<Followed> EnterFutexUnlock(size_t thread, const SyscallInput& call);
  Followed ContradictLock(size_t thread, const SyscallInput& call,
                          uint32_t word);
  Status WriteFutexWord(size_t thread, uint64_t addr, uint32_t value);
  std::optional<size_t> NextOwner(uint64_t addr, uint32_t recorded) const;
  Followed CheckFutexWord(size_t thread, const SyscallInput& call,
                          uint32_t expected);
  // Whether the word has another value than the one that was waited with.
  bool IsRefusedNow(const Wait::Refusal& refusal) const;
  bool IsOwnerNow(const Wait::Owning& owning) const;
  // Notes which waits the kernel would refuse now.
  void SeeRefusals();
  Followed ContradictWake(size_t thread, const SyscallInput& call);
  Result<Followed> FinishCall(size_t thread, const SyscallInput& call);
  Followed CheckCall(size_t thread, const SyscallInput& call);
  Followed CheckOutput(size_t thread, const SyscallInput& call);
  Status ObserveSyscall(size_t thread, uint64_t insn_offset);
  Status ApplyWrites(size_t thread, std::span<const MemoryWrite> writes);
  // Tells the engine of a write of the kernel, which has been made.
  void TellWritten(size_t thread, uint64_t addr, uint64_t size_bytes);
  Status WriteRseq(size_t thread, uint32_t slice);
  Status CreateThread(size_t parent, const NewThread& made);
  // Whether what the thread does to descriptors and signals is followed.
  bool IsInKernelModel(const ThreadState& thread) const {
    return !options_.force_path && !thread.is_child_process;
  }
  // Where the call has to wait for another thread to unmap what it mapped;
  // empty: it has not.
  MemoryRange RoomAwaitedBy(const SyscallInput& call) const;
  // Whether the call that it is in may return now.
  Result<bool> MayReturn(const ThreadState& thread) const;
  // Whether a process that had the memory of this one has ended, or runs
  // another program.
  Result<bool> HasLeft(size_t child) const;
  void Exit(size_t thread, const SyscallInput& call);
  Result<Followed> ReturnFromCall(size_t thread);

  Result<std::optional<Advance::Stop>> ForceOn(size_t thread,
                                               const StreamBlock& block);
  Followed Contradict(Contradiction::Kind kind, size_t thread,
                      std::string text);
  // Called before a thread's state changes.
  void BeforeChange(size_t thread);
  void PutBack(UndoEntry& saved);

  Tape* tape_;
  machine::CodeCache* code_;
  ProcessOptions options_;
  machine::Memory memory_;
  std::vector<ThreadState> threads_;
  // Not used where the path is forced: no thread waits then.
  KernelObjects kernel_;
  uint64_t brk_ = 0;
  // By shmdt(2), and it is not known how much that has unmapped.
  bool has_detached_ = false;
  std::shared_ptr<const ToldCpu> told_cpu_;  // StartState::told_cpu; or null
  Contradiction contradiction_;
  machine::AccessObserver* observer_ = nullptr;
  CallObserver* call_observer_ = nullptr;
  Engine* engine_ = nullptr;
  bool stops_asleep_ = false;
  bool stops_to_drain_ = false;
  OutputSink output_;
  uint64_t outputs_differing_ = 0;
  uint64_t retired_total_ = 0;
  size_t refusals_unseen_ = 0;  // threads with a Wait::refusal not seen yet
  UndoLog<UndoEntry, machine::Memory::Mark> undo_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_PROCESS_H_
