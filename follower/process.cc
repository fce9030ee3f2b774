#include "follower/process.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "common/check.h"
#include "common/digest.h"
#include "common/x86/opcode.h"
#include "follower/kernel/call_mappings.h"
#include "follower/start_registers.h"
#include "follower/thread_cpu.h"
#include "follower/told_insn.h"
#include "machine/decode.h"

namespace clew::follower {

namespace {

std::optional<Advance::Stop> StopOf(Followed followed) {
  return followed == Followed::kAsRecorded
             ? std::nullopt
             : std::optional(Advance::Stop::kContradiction);
}

// Maps the start state's segments and fills them.
Status LoadSegments(const StartState& start, machine::Memory& memory) {
  for (const StartSegment& segment : start.segments) {
    const uint64_t addr = segment.addr.as_int();
    const auto number = segment.shared_memory != 0
                            ? std::optional(SharedPageNumber(
                                  segment.shared_memory, segment.file_offset))
                            : std::nullopt;
    MapMemory({addr, segment.size_bytes}, segment.prot, number, memory);
    if (segment.bytes.size() > segment.size_bytes ||
        !memory.Poke(addr, segment.bytes)) {
      return CorruptInput(
          "start.pb: segment at {:#x}: {} bytes of contents, wanted at most "
          "its size, {}",
          segment.addr, segment.bytes.size(), segment.size_bytes);
    }
  }
  return {};
}

}  // namespace

Process::Process(Tid id, Tape& tape, machine::CodeCache& code,
                 ProcessOptions options)
    : tape_(&tape),
      code_(&code),
      options_(options),
      threads_(tape.thread_count()),
      kernel_(id) {}

Result<Process> Process::Start(const StartState& start, Tape& tape,
                               machine::CodeCache& code,
                               ProcessOptions options) {
  Process process(start.first.thread, tape, code, options);
  CLEW_RETURN_IF_ERROR(LoadSegments(start, process.memory_));
  process.brk_ = start.brk.as_int();
  if (start.told_cpu) {
    process.told_cpu_ = std::make_shared<const ToldCpu>(*start.told_cpu);
  }
  CLEW_RETURN_IF_ERROR(process.BeginThreads(start));
  if (options.model != nullptr) {
    for (ThreadState& of : process.threads_) {
      of.buffer = machine::HeldBuffer(options.model->NewBuffer());
    }
  }
  return process;
}

// One that never ran while it was recorded has no stream.
Status Process::BeginThreads(const StartState& start) {
  std::vector<const StartThread*> all = {&start.first};
  for (const StartThread& other : start.others) {
    all.push_back(&other);
  }
  bool any = false;
  for (const StartThread* const begun : all) {
    const auto thread = tape_->IndexOf(begun->thread);
    if (!thread) {
      continue;
    }
    ThreadState& state = threads_[*thread];
    if (state.phase != ThreadPhase::kNotCreated) {
      return CorruptInput(
          "start.pb: thread {} is there twice, wanted once each; the recording "
          "is damaged",
          begun->thread);
    }
    state.registers = StartRegisters(*begun, start);
    state.phase = ThreadPhase::kRunning;
    state.rseq_addr = begun->rseq_addr;
    state.rseq_is_new = true;
    any = true;
  }
  return any ? Status()
             : CorruptInput(
                   "start.pb: thread {} has no stream in perf.data, wanted one "
                   "of the {} threads that have",
                   start.first.thread, tape_->thread_count());
}

Process Process::Forced() const {
  Process copy = *this;
  copy.options_.force_path = true;
  for (ThreadState& state : copy.threads_) {
    state.wait = {};
  }
  copy.refusals_unseen_ = 0;
  return copy;
}

Process Process::SequentiallyConsistent() const {
  Process copy = *this;
  copy.options_.model = nullptr;
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    CLEW_CHECK(!StoresWait(thread), "a store of thread {} waits", tid(thread));
    copy.threads_[thread].buffer = {};
  }
  return copy;
}

Result<Advance> Process::Run(size_t thread, uint64_t until_insn) {
  BeforeChange(thread);
  ThreadState& state = threads_[thread];
  const uint64_t before = state.retired;
  ThreadCpu cpu(*this, thread);
  Advance advance;
  while (state.retired < until_insn) {
    CLEW_ASSIGN_OR_RETURN(begun, BeginBlock(thread));
    if (begun) {
      advance.stop = *begun;
      break;
    }
    CLEW_ASSIGN_OR_RETURN(stopped, RunInBlock(thread, cpu, until_insn));
    if (stopped) {
      advance.stop = *stopped;
      break;
    }
    if (stops_asleep_ && state.wait.HangsOnWord()) {
      advance.stop = Advance::Stop::kBlocked;
      break;
    }
  }
  advance.insns_retired = state.retired - before;
  retired_total_ += advance.insns_retired;
  return advance;
}

Result<Advance> Process::Take(size_t thread, const ScheduleStep& step) {
  if (step.kind == ScheduleStep::Kind::kRun) {
    return Run(thread, step.until_insn);
  }
  BeforeChange(thread);
  Flush(thread, step);
  return Advance{};
}

size_t Process::actor_count() const { return threads_.size() * (1 + queues()); }

Actor Process::actor(size_t number) const {
  if (number < threads_.size()) {
    return {.kind = ScheduleStep::Kind::kRun, .thread = number};
  }
  const size_t behind = number - threads_.size();
  return {.kind = ScheduleStep::Kind::kFlush,
          .thread = behind % threads_.size(),
          .queue = static_cast<uint32_t>(behind / threads_.size())};
}

std::optional<machine::WaitingStore> Process::OldestStore(
    size_t thread, uint32_t queue) const {
  const machine::StoreBuffer* const buffer = threads_[thread].buffer.get();
  return buffer == nullptr ? std::nullopt : buffer->Oldest(queue);
}

std::optional<machine::WaitingStore> Process::OldestStore(size_t thread) const {
  const machine::StoreBuffer* const buffer = threads_[thread].buffer.get();
  const auto queue = buffer == nullptr ? std::nullopt : buffer->OldestQueue();
  return queue ? buffer->Oldest(*queue) : std::nullopt;
}

bool Process::MayLeave(size_t thread, uint32_t queue) const {
  const machine::StoreBuffer* const buffer = threads_[thread].buffer.get();
  return buffer != nullptr && buffer->MayLeave(queue);
}

void Process::Forward(size_t thread, uint64_t addr,
                      std::span<std::byte> bytes) const {
  if (StoresWait(thread)) {
    threads_[thread].buffer.get()->Forward(addr, bytes);
  }
}

void Process::Flush(size_t thread, const ScheduleStep& step) {
  machine::StoreBuffer* const buffer = threads_[thread].buffer.get();
  while (buffer != nullptr) {
    const auto queue = step.queue == ScheduleStep::kAllQueues
                           ? buffer->OldestQueue()
                           : std::optional<uint32_t>(step.queue - 1);
    const auto store = queue ? buffer->Oldest(*queue) : std::nullopt;
    if (!store || store->insn >= step.until_insn || !buffer->MayLeave(*queue)) {
      return;
    }
    buffer->Flush(*queue, memory_);
  }
}

// Whether the kernel ran on the thread's core before its next instruction: it
// was switched out, or a signal is handled next.
Result<bool> Process::EntersKernel(size_t thread) const {
  const ThreadState& state = threads_[thread];
  if (state.block_done != 0) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(block, tape_->Block(thread, state.block));
  return block != nullptr &&
         (block->slice != state.slice ||
          (!options_.force_path && state.registers.rip != block->ip.as_int()));
}

Result<bool> Process::WaitsToDrain(size_t thread) const {
  if (!StoresWait(thread)) {
    return false;
  }
  const ThreadState& state = threads_[thread];
  if (state.buffer.get()->Full()) {
    return true;
  }
  CLEW_ASSIGN_OR_RETURN(enters, EntersKernel(thread));
  return enters || machine::NextDrains(state.registers, memory_, *code_);
}

// The kernel finds what the thread has stored.
void Process::DrainBuffer(size_t thread) {
  if (machine::StoreBuffer* const buffer = threads_[thread].buffer.get()) {
    buffer->Drain(memory_);
  }
}

Result<std::optional<Advance::Stop>> Process::BeginBlock(size_t thread) {
  ThreadState& state = threads_[thread];
  if (state.phase == ThreadPhase::kNotCreated) {
    return Advance::Stop::kBlocked;
  }
  CLEW_ASSIGN_OR_RETURN(block, tape_->Block(thread, state.block));
  if (block == nullptr || state.phase == ThreadPhase::kGone) {
    return Advance::Stop::kStreamEnded;
  }
  if (refusals_unseen_ != 0 && state.block_done == 0) {
    SeeRefusals();
  }
  CLEW_ASSIGN_OR_RETURN(awaits, AwaitsSignal(thread, *block));
  if (awaits) {
    return Advance::Stop::kBlocked;
  }
  if (state.phase == ThreadPhase::kInCall) {
    CLEW_ASSIGN_OR_RETURN(may_return, MayReturn(state));
    if (!may_return) {
      return Advance::Stop::kBlocked;
    }
    CLEW_ASSIGN_OR_RETURN(returned, ReturnFromCall(thread));
    if (returned == Followed::kContradiction) {
      return Advance::Stop::kContradiction;
    }
  }
  if (StoresWait(thread)) {
    CLEW_ASSIGN_OR_RETURN(enters, EntersKernel(thread));
    if (enters && stops_to_drain_) {
      return Advance::Stop::kBlocked;
    }
    if (enters) {
      DrainBuffer(thread);
    }
  }
  if (state.rseq_addr != 0 &&
      (state.rseq_is_new || state.slice != block->slice)) {
    CLEW_RETURN_IF_ERROR(WriteRseq(thread, block->slice));
  }
  state.slice = block->slice;
  if (state.block_done == 0 && state.registers.rip != block->ip.as_int()) {
    CLEW_ASSIGN_OR_RETURN(delivered, DeliverSignals(thread, *block));
    return StopOf(delivered);
  }
  return std::nullopt;
}

Result<std::optional<Advance::Stop>> Process::RunInBlock(size_t thread,
                                                         ThreadCpu& cpu,
                                                         uint64_t until_insn) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(block_at, tape_->Block(thread, state.block));
  const StreamBlock block = *block_at;
  const uint64_t wanted = std::min<uint64_t>(
      block.insn_count - state.block_done, until_insn - state.retired);
  const machine::Stop stop = cpu.Run(wanted);
  if ((observer_ != nullptr || call_observer_ != nullptr) &&
      stop.kind == machine::StopKind::kSyscall) {
    CLEW_RETURN_IF_ERROR(ObserveSyscall(thread, stop.insns_retired - 1));
  }
  state.retired += stop.insns_retired;
  state.block_done += static_cast<uint32_t>(stop.insns_retired);
  switch (stop.kind) {
    case machine::StopKind::kBudget:
      return EndBlock(thread, block);
    case machine::StopKind::kDrain:
      return Advance::Stop::kBlocked;
    case machine::StopKind::kObserver: {
      CLEW_ASSIGN_OR_RETURN(ended, EndBlock(thread, block));
      return ended.value_or(Advance::Stop::kObserver);
    }
    case machine::StopKind::kNondeterministic: {
      CLEW_ASSIGN_OR_RETURN(done, CompleteNondeterministic(thread, cpu));
      return done == Followed::kAsRecorded ? EndBlock(thread, block)
                                           : StopOf(done);
    }
    case machine::StopKind::kSyscall:
    case machine::StopKind::kBreakpoint:
      break;
    case machine::StopKind::kFault:
      if (options_.force_path) {
        return ForceOn(thread, block);
      }
      return StopOf(Contradict(
          Contradiction::Kind::kFault, thread,
          fmt::format("the machine faults ({} {:#x}), the recorded run "
                      "did not",
                      stop.fault.write ? "write" : "access", stop.fault.addr)));
    case machine::StopKind::kUnsupported:
      return Unsupported("thread {}: {}", tid(thread), stop.detail);
  }
  const bool calls = stop.kind == machine::StopKind::kSyscall;
  if (state.block_done != block.insn_count) {
    return StopOf(Contradict(
        Contradiction::Kind::kPath, thread,
        fmt::format("{} where the recorded run had none",
                    calls ? "a system call" : "a breakpoint instruction")));
  }
  ++state.block;
  state.block_done = 0;
  DrainBuffer(thread);
  if (!calls) {
    return std::nullopt;  // a signal follows, or the end
  }
  CLEW_ASSIGN_OR_RETURN(entered, EnterSyscall(thread));
  return StopOf(entered);
}

// Moves on to the next block where this one is done, and compares the path.
// After an interruption the comparison waits until a signal may be delivered.
Result<std::optional<Advance::Stop>> Process::EndBlock(
    size_t thread, const StreamBlock& block) {
  ThreadState& state = threads_[thread];
  if (state.block_done != block.insn_count) {
    return std::nullopt;
  }
  ++state.block;
  state.block_done = 0;
  if (block.interrupted) {
    return std::nullopt;
  }
  CLEW_ASSIGN_OR_RETURN(next, tape_->Block(thread, state.block));
  if (next != nullptr && next->ip.as_int() != state.registers.rip) {
    if (options_.force_path) {
      state.registers.rip = next->ip.as_int();
      if (engine_ != nullptr) {
        engine_->OnForced(thread);
      }
      return std::nullopt;
    }
    return StopOf(Contradict(
        Contradiction::Kind::kPath, thread,
        fmt::format("goes on at {:#x}, the recorded run went on at {:#x}",
                    state.registers.rip, next->ip)));
  }
  return std::nullopt;
}

// Skips what is left of a block.
Result<std::optional<Advance::Stop>> Process::ForceOn(
    size_t thread, const StreamBlock& block) {
  ThreadState& state = threads_[thread];
  if (engine_ != nullptr) {
    engine_->OnDeparted(thread);
  }
  state.retired += block.insn_count - state.block_done;
  ++state.block;
  state.block_done = 0;
  CLEW_ASSIGN_OR_RETURN(next, tape_->Block(thread, state.block));
  if (next != nullptr) {
    state.registers.rip = next->ip.as_int();
  }
  return std::nullopt;
}

Result<InsnInput> Process::ToldInput(size_t thread) {
  const ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(block, tape_->Block(thread, state.block));
  const CoreId core = tape_->slices()[block->slice].core;
  const uint64_t ip = state.registers.rip;
  std::array<std::byte, x86::kInsnBytesMax> bytes = {};
  const auto insn = std::span(bytes).first(memory_.Fetch(ip, bytes));
  const auto told = ToldResult(*told_cpu_, insn, state.registers, *block, core);
  return told ? Result<InsnInput>(*told)
              : Unsupported("thread {}: nothing says what this gave: {}",
                            tid(thread), machine::Decoder().Describe(ip, insn));
}

Result<Followed> Process::CompleteNondeterministic(size_t thread,
                                                   ThreadCpu& cpu) {
  ThreadState& state = threads_[thread];
  if (told_cpu_ != nullptr) {
    CLEW_ASSIGN_OR_RETURN(told, ToldInput(thread));
    cpu.CompleteInsn(told);
  } else {
    CLEW_ASSIGN_OR_RETURN(record, tape_->Input(thread, state.input));
    const auto* const input =
        record == nullptr ? nullptr : std::get_if<InsnInput>(record);
    if (input == nullptr || input->ip.as_int() != state.registers.rip) {
      return Contradict(record == nullptr ? Contradiction::Kind::kNoInput
                                          : Contradiction::Kind::kPath,
                        thread,
                        "an instruction whose result is not in the input log");
    }
    cpu.CompleteInsn(*input);
    ++state.input;
  }
  ++state.retired;
  ++state.block_done;
  return Followed::kAsRecorded;
}

machine::Stop Process::ExecuteUnrecorded(size_t thread) {
  BeforeChange(thread);
  machine::Stop stop = ThreadCpu(*this, thread).Run(1);
  DrainBuffer(thread);  // the kernel finds what a REP stored before it failed
  return stop;
}

Result<const StreamBlock*> Process::NextBlock(size_t thread) const {
  return tape_->Block(thread, threads_[thread].block);
}

Result<bool> Process::MayReturn(const ThreadState& thread) const {
  if (thread.wait.child) {
    CLEW_ASSIGN_OR_RETURN(has_left, HasLeft(*thread.wait.child));
    return has_left;
  }
  if (thread.wait.refusal) {
    return thread.wait.refusal->was_seen || IsRefusedNow(*thread.wait.refusal);
  }
  if (thread.wait.owning) {
    return IsOwnerNow(*thread.wait.owning);
  }
  return kernel_.MayReturn(thread.wait) &&
         (has_detached_ || IsFree(memory_, thread.wait.room));
}

// The call by which it runs another program has no result; of a process that
// a signal has ended there is nothing more.
Result<bool> Process::HasLeft(size_t child) const {
  const ThreadState& state = threads_[child];
  if (state.phase == ThreadPhase::kRunning) {
    CLEW_ASSIGN_OR_RETURN(block, NextBlock(child));
    return block == nullptr;
  }
  if (state.phase != ThreadPhase::kInCall) {
    return state.phase == ThreadPhase::kGone;
  }
  CLEW_ASSIGN_OR_RETURN(record, tape_->Input(child, state.input));
  const auto* const call = std::get_if<SyscallInput>(record);
  return call != nullptr && !call->result;
}

Result<bool> Process::CanRun(size_t thread) const {
  const ThreadState& state = threads_[thread];
  if (state.phase == ThreadPhase::kNotCreated ||
      state.phase == ThreadPhase::kGone) {
    return false;
  }
  if (state.phase == ThreadPhase::kInCall) {
    CLEW_ASSIGN_OR_RETURN(may_return, MayReturn(state));
    if (!may_return) {
      return false;
    }
  }
  CLEW_ASSIGN_OR_RETURN(block, NextBlock(thread));
  if (block == nullptr) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(awaits, AwaitsSignal(thread, *block));
  return !awaits;
}

// Those at hand first: the others may have to be decoded.
Result<bool> Process::AllEnded() const {
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    if (StoresWait(thread)) {
      return false;
    }
  }
  for (const bool on_tape : {true, false}) {
    for (size_t thread = 0; thread < threads_.size(); ++thread) {
      if (NextIsOnTape(thread) == on_tape) {
        CLEW_ASSIGN_OR_RETURN(block, NextBlock(thread));
        if (block != nullptr) {
          return false;
        }
      }
    }
  }
  return true;
}

Followed Process::Contradict(Contradiction::Kind kind, size_t thread,
                             std::string text) {
  const ThreadState& state = threads_[thread];
  contradiction_ = {
      .kind = kind,
      .thread = thread,
      .tid = tid(thread),
      .insn_index = state.retired,
      .ip = state.registers.rip,
      .inputs = state.input + (state.phase == ThreadPhase::kInCall ? 1 : 0),
      .text = std::move(text)};
  return Followed::kContradiction;
}

Process::Mark Process::SetMark() {
  kernel_.SetMark();
  return undo_.SetMark(memory_.SetMark());
}

void Process::RollBack(Mark mark) {
  kernel_.RollBack(mark);
  memory_.RollBack(
      undo_.RollBack(mark, [this](UndoEntry& saved) { PutBack(saved); }));
}

void Process::PutBack(UndoEntry& saved) {
  threads_[saved.thread] = saved.state;
  brk_ = saved.brk;
  has_detached_ = saved.has_detached;
  outputs_differing_ = saved.outputs_differing;
  retired_total_ = saved.retired_total;
  refusals_unseen_ = saved.refusals_unseen;
}

void Process::DropMarks() {
  undo_.Clear();
  kernel_.DropMarks();
  memory_.DropMarks();
}

void Process::BeforeChange(size_t thread) {
  if (undo_.has_marks()) {
    undo_.Add({.thread = thread,
               .state = threads_[thread],
               .brk = brk_,
               .has_detached = has_detached_,
               .outputs_differing = outputs_differing_,
               .retired_total = retired_total_,
               .refusals_unseen = refusals_unseen_});
  }
  threads_[thread].registers_digest.reset();
}

uint64_t Process::StateDigest() const {
  uint64_t digest = memory_.digest() + kernel_.Digest() + MixBits(brk_);
  for (size_t i = 0; i < threads_.size(); ++i) {
    const ThreadState& state = threads_[i];
    if (!state.registers_digest) {
      state.registers_digest = machine::DigestOf(state.registers);
    }
    digest += MixBits(*state.registers_digest ^ MixBits(state.retired) ^
                      MixBits(i * 8 + static_cast<uint64_t>(state.phase)));
    if (state.wait.refusal && state.wait.refusal->was_seen) {
      digest += MixBits(i);
    }
    if (state.wait.owning) {
      digest += MixBits(MixBits(i) + state.wait.owning->number);
    }
    if (const machine::StoreBuffer* const buffer = state.buffer.get()) {
      digest += MixBits(buffer->Digest() ^ MixBits(i));
    }
  }
  return digest;
}

}  // namespace clew::follower
