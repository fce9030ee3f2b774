#include "tests/support/guest_recorder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/digest.h"
#include "machine/cpu.h"
#include "tests/support/own_memory.h"

asm(R"(
    .text
    .globl GuestSpawn
    .type GuestSpawn, @function
GuestSpawn:
    sub $16, %rdx
    mov %rdi, (%rdx)
    mov %rsi, 8(%rdx)
    mov $0x50f00, %edi
    mov %rdx, %rsi
    xor %edx, %edx
    mov $56, %eax
    syscall
    test %eax, %eax
    jne 1f
    pop %rax
    pop %rdi
    call *%rax
    mov $60, %eax
    xor %edi, %edi
    syscall
    ud2
1:  ret
    .size GuestSpawn, .-GuestSpawn

    .globl GuestSyscall
    .type GuestSyscall, @function
GuestSyscall:
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    xor %r10d, %r10d
    syscall
    ret
    .size GuestSyscall, .-GuestSyscall
)");

namespace clew::test {
namespace {

constexpr uint64_t kStackTop = 0x7000'0000'0000;
constexpr uint64_t kStackBytes = 64 * 1024;
constexpr int32_t kFirstTid = 100;

class VectorStreams final : public StreamSource {
 public:
  VectorStreams(const std::vector<Tid>& threads,
                const std::vector<Slice>& slices,
                const std::map<Tid, std::vector<StreamBlock>>& blocks)
      : threads_(threads), slices_(slices), blocks_(blocks) {}
  const std::vector<Tid>& threads() const override { return threads_; }
  const std::vector<Slice>& slices() const override { return slices_; }
  Result<std::optional<StreamItem>> Next(Tid thread) override {
    const auto& blocks = blocks_.at(thread);
    size_t& position = positions_[thread];
    if (position == blocks.size()) {
      return std::nullopt;
    }
    return StreamItem(blocks[position++]);
  }
  TscTicks NotBefore(Tid thread) override {
    const auto& blocks = blocks_.at(thread);
    const auto found = positions_.find(thread);
    const size_t position = found == positions_.end() ? 0 : found->second;
    return position == blocks.size() ? TscTicks(~uint64_t{0})
                                     : slices_[blocks[position].slice].time.lo;
  }

 private:
  const std::vector<Tid>& threads_;
  const std::vector<Slice>& slices_;
  const std::map<Tid, std::vector<StreamBlock>>& blocks_;
  std::map<Tid, size_t> positions_;
};

class VectorInputs final : public InputSource {
 public:
  explicit VectorInputs(const std::map<Tid, std::vector<InputRecord>>& inputs)
      : inputs_(inputs) {}
  Result<std::optional<InputRecord>> Next(Tid thread) override {
    const auto found = inputs_.find(thread);
    size_t& position = positions_[thread];
    if (found == inputs_.end() || position == found->second.size()) {
      return std::nullopt;
    }
    return found->second[position++];
  }

 private:
  const std::map<Tid, std::vector<InputRecord>>& inputs_;
  std::map<Tid, size_t> positions_;
};

// The test program's own mappings, as start segments.
std::vector<StartSegment> OwnSegments() {
  std::vector<StartSegment> segments;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::string self;
  uint64_t own_end = 0;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    std::string range, prot, offset, device, inode, path;
    fields >> range >> prot >> offset >> device >> inode >> path;
    if (self.empty()) {
      self = path;  // the program is the lowest file
    }
    uint64_t begin = 0;
    uint64_t end = 0;
    std::sscanf(range.c_str(), "%lx-%lx", &begin, &end);
    // The end of .bss is anonymous, right behind the file's last page.
    const bool bss = path.empty() && begin == own_end;
    const bool own = !path.empty() && path == self;
    if ((!own && !bss) || prot[0] != 'r') {
      continue;
    }
    own_end = end;
    StartSegment segment;
    segment.addr = TraceeAddr(begin);
    segment.size_bytes = end - begin;
    segment.prot = kProtRead | (prot[1] == 'w' ? kProtWrite : 0u) |
                   (prot[2] == 'x' ? kProtExec : 0u);
    segment.bytes = ReadOwn(begin, end - begin);
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace

// Runs the threads and writes down what a recorder would see.
class GuestKernel {
 public:
  GuestKernel(GuestRecording& result, const GuestRecorderOptions& options)
      : result_(result), options_(options), random_(options.seed) {}

  void Run(void (*entry)(uint64_t), uint64_t argument) {
    Load(entry, argument);
    while (!stopped_ && result_.truth_.insns < options_.insns_max) {
      Schedule();
      std::vector<size_t> busy;
      for (size_t core = 0; core < running_.size(); ++core) {
        if (running_[core]) {
          busy.push_back(core);
        }
      }
      if (busy.empty()) {
        result_.recording_.failure.kind = FailureKind::kHang;
        break;
      }
      RunQuantum(busy[random_.Below(busy.size())]);
      if (options_.interrupt_one_in != 0 &&
          random_.Below(options_.interrupt_one_in) == 0) {
        BeginAWaitAnew();
      }
    }
    for (size_t core = 0; core < running_.size(); ++core) {
      if (running_[core]) {
        Leave(core);
      }
    }
    for (auto& [tid, call] : pending_) {
      result_.data_->inputs[tid].push_back(call);
    }
    NumberSlices();
    memory_.EnableDigest();
    result_.truth_.memory_digest = memory_.digest();
  }

 private:
  struct Thread {
    Tid tid;
    machine::Registers registers;
    uint64_t retired = 0;
    bool ready = true;
    uint64_t wait_addr = 0;
    uint64_t runs_since = 0;
    bool block_open = false;  // the next instruction may join the last block
    machine::HeldBuffer buffer = {};
  };

  void Load(void (*entry)(uint64_t), uint64_t argument) {
    StartState& start = result_.recording_.start;
    StartThread& first = start.first;
    first.thread = Tid(kFirstTid);
    start.segments = OwnSegments();
    StartSegment stack;
    stack.addr = TraceeAddr(kStackTop - kStackBytes);
    stack.size_bytes = kStackBytes;
    stack.prot = kProtRead | kProtWrite;
    start.segments.push_back(stack);
    first.rip = TraceeAddr(reinterpret_cast<uint64_t>(entry));
    first.gpr[kRdi] = argument;
    first.gpr[kRsp] = kStackTop - 8 - 256;
    start.initial_stack = TraceeAddr(first.gpr[kRsp]);
    for (const StartSegment& segment : start.segments) {
      memory_.Map(segment.addr.as_int(), segment.size_bytes, segment.prot);
      memory_.Poke(segment.addr.as_int(), segment.bytes);
    }
    Thread main;
    main.tid = first.thread;
    main.registers.rip = first.rip.as_int();
    main.registers.gpr = first.gpr;
    main.buffer = NewBuffer();
    threads_.push_back(main);
    running_.resize(options_.cores);
    slice_.resize(options_.cores);
  }

  machine::HeldBuffer NewBuffer() const {
    return options_.model == nullptr
               ? machine::HeldBuffer()
               : machine::HeldBuffer(options_.model->NewBuffer());
  }

  // Lets the oldest store leave, or all.
  void Flush(Thread& thread, bool all) {
    machine::StoreBuffer* const buffer = thread.buffer.get();
    const auto queue = buffer == nullptr ? std::nullopt : buffer->OldestQueue();
    if (!queue) {
      return;
    }
    const uint64_t until =
        all ? thread.retired : buffer->Oldest(*queue)->insn + 1;
    if (options_.model->queues() > 1 && !all) {
      FlushAnyQueue(thread);
      return;
    }
    WriteDown(thread, 0, until);
    for (auto next = queue; next && buffer->Oldest(*next)->insn < until;
         next = buffer->OldestQueue()) {
      buffer->Flush(*next, memory_);
    }
  }

  void FlushAnyQueue(Thread& thread) {
    machine::StoreBuffer* const buffer = thread.buffer.get();
    std::vector<uint32_t> queues;
    for (uint32_t i = 0; i < options_.model->queues(); ++i) {
      if (buffer->MayLeave(i)) {
        queues.push_back(i);
      }
    }
    const uint32_t queue = queues[random_.Below(queues.size())];
    const uint64_t until = buffer->Oldest(queue)->insn + 1;
    WriteDown(thread, queue + 1, until);
    while (buffer->MayLeave(queue) && buffer->Oldest(queue)->insn < until) {
      buffer->Flush(queue, memory_);
    }
  }

  void WriteDown(const Thread& thread, uint32_t queue, uint64_t until) {
    auto& schedule = result_.truth_.schedule;
    AppendRun(schedule, thread.tid, thread.retired);
    schedule.push_back({.kind = ScheduleStep::Kind::kFlush,
                        .queue = static_cast<uint16_t>(queue),
                        .thread = thread.tid,
                        .until_insn = until});
  }

  uint64_t WindowBegin(uint64_t tick) const {
    return options_.window_ticks == 0
               ? 0
               : tick / options_.window_ticks * options_.window_ticks;
  }
  uint64_t WindowEnd(uint64_t tick) const {
    return options_.window_ticks == 0
               ? ~uint64_t{0}
               : WindowBegin(tick) + options_.window_ticks;
  }

  void Schedule() {
    for (size_t core = 0; core < running_.size(); ++core) {
      if (running_[core]) {
        const Thread& thread = threads_[*running_[core]];
        if (!thread.ready ||
            tick_ - thread.runs_since > options_.time_slice_ticks) {
          Leave(core);
        }
      }
    }
    for (size_t core = 0; core < running_.size(); ++core) {
      if (running_[core]) {
        continue;
      }
      std::vector<size_t> waiting;
      for (size_t i = 0; i < threads_.size(); ++i) {
        if (threads_[i].ready &&
            std::ranges::find(running_, std::optional(i)) == running_.end()) {
          waiting.push_back(i);
        }
      }
      if (!waiting.empty()) {
        Enter(core, waiting[random_.Below(waiting.size())]);
      }
    }
  }

  void Enter(size_t core, size_t thread) {
    running_[core] = thread;
    threads_[thread].runs_since = tick_;
    Slice slice;
    slice.id = static_cast<uint32_t>(result_.data_->slices.size());
    slice.core = CoreId(static_cast<uint32_t>(core));
    slice.thread = threads_[thread].tid;
    slice.time.lo = TscTicks(tick_);
    slice_[core] = slice.id;
    result_.data_->slices.push_back(slice);
    auto& order = result_.data_->threads;
    if (std::ranges::find(order, slice.thread) == order.end()) {
      order.push_back(slice.thread);
      result_.data_->blocks[slice.thread];
    }
  }

  void Leave(size_t core) {
    Flush(threads_[*running_[core]], true);
    result_.data_->slices[slice_[core]].time.hi = TscTicks(tick_);
    running_[core].reset();
  }

  void RunQuantum(size_t core) {
    const size_t index = *running_[core];
    const uint64_t quantum = 1 + random_.Below(options_.quantum_insns_max);
    for (uint64_t i = 0; i < quantum && !stopped_ && threads_[index].ready;
         ++i) {
      if (options_.model != nullptr &&
          random_.Below(options_.flush_one_in) == 0) {
        Flush(threads_[index], false);
      }
      StepThread(core, index);
    }
    result_.truth_.schedule.push_back({.kind = ScheduleStep::Kind::kRun,
                                       .thread = threads_[index].tid,
                                       .until_insn = threads_[index].retired});
  }

  void StepThread(size_t core, size_t index) {
    Thread& thread = threads_[index];
    const uint64_t ip = thread.registers.rip;
    machine::Machine cpu(thread.registers, memory_, code_);
    cpu.set_store_buffer(thread.buffer.get(), thread.retired, false);
    const machine::Stop stop = cpu.Run(1);
    if (stop.kind == machine::StopKind::kFault) {
      result_.recording_.failure = {.kind = FailureKind::kSignal,
                                    .signal = 11,
                                    .exit_status = 0,
                                    .thread = thread.tid,
                                    .ip = TraceeAddr(ip),
                                    .addr = TraceeAddr(stop.fault.addr)};
      stopped_ = true;
      return;
    }
    CLEW_CHECK(stop.insns_retired == 1, "guest at {:#x}: {}", ip, stop.detail);
    ++tick_;
    ++thread.retired;
    ++result_.truth_.insns;
    result_.truth_.ticks[thread.tid].push_back(TscTicks(tick_));
    StreamBlock block;
    block.ip = TraceeAddr(ip);
    block.insn_count = 1;
    block.slice = slice_[core];
    const uint64_t begin = result_.data_->slices[slice_[core]].time.lo.as_int();
    block.time.lo = TscTicks(std::max(WindowBegin(tick_), begin));
    block.time.hi = TscTicks(WindowEnd(tick_));
    block.is_syscall = stop.kind == machine::StopKind::kSyscall;
    AddBlock(index, block);
    if (block.is_syscall) {
      if (thread.buffer.get() != nullptr) {
        thread.buffer.get()->Drain(memory_);
      }
      Syscall(index);
    }
  }

  void AddBlock(size_t index, const StreamBlock& block) {
    Thread& thread = threads_[index];
    auto& blocks = result_.data_->blocks[thread.tid];
    if (thread.block_open && !block.is_syscall &&
        blocks.back().slice == block.slice &&
        blocks.back().time == block.time) {
      ++blocks.back().insn_count;
    } else {
      blocks.push_back(block);
    }
    thread.block_open = options_.merge_blocks && !block.is_syscall &&
                        !MayGoTwoWays(block.ip.as_int());
  }

  // A conditional or indirect branch, or a return. Source: Intel SDM volume 2,
  // appendix A, opcode maps.
  bool MayGoTwoWays(uint64_t ip) const {
    std::array<std::byte, 15> bytes = {};
    memory_.Fetch(ip, bytes);
    constexpr std::string_view kPrefixes =
        "\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0";
    size_t at = 0;
    const auto byte = [&] { return std::to_integer<uint32_t>(bytes.at(at)); };
    while (kPrefixes.contains(static_cast<char>(byte())) || byte() >> 4 == 4) {
      ++at;
    }
    const uint32_t opcode = byte();
    ++at;
    const uint32_t operation = byte() >> 3 & 7;  // of opcode 0xff
    return opcode >> 4 == 7 || (opcode >= 0xe0 && opcode <= 0xe3) ||
           (opcode == 0x0f && byte() >> 4 == 8) || opcode == 0xc2 ||
           opcode == 0xc3 ||
           (opcode == 0xff && operation >= 2 && operation <= 5);
  }

  // The kernel is entered when SYSCALL retires.
  TscTicks CallTime() const {
    return TscTicks(options_.call_times && options_.window_ticks != 0 ? tick_
                                                                      : 0);
  }

  void Syscall(size_t index) {
    Thread& thread = threads_[index];
    auto& gpr = thread.registers.gpr;
    SyscallInput call;
    call.number = gpr[kRax];
    call.args = {gpr[kRdi], gpr[kRsi], gpr[kRdx],
                 gpr[kR10], gpr[kR8],  gpr[kR9]};
    call.entered_tsc = CallTime();
    call.left_tsc = CallTime();
    const Tid tid = thread.tid;
    switch (call.number) {
      case 24:  // sched_yield
        call.result = 0;
        break;
      case 56: {  // clone
        Thread child;
        child.tid = Tid(kFirstTid + static_cast<int32_t>(threads_.size()));
        child.registers = thread.registers;
        child.buffer = NewBuffer();
        child.registers.gpr[kRax] = 0;
        child.registers.gpr[kRsp] = call.args[1];
        call.result = child.tid.as_int();
        gpr[kRax] = static_cast<uint64_t>(*call.result);
        result_.data_->inputs[tid].push_back(call);
        threads_.push_back(child);
        return;
      }
      case 60:
        call.left_tsc = {};
        thread.ready = false;
        break;
      case 202:
        if (!Futex(index, call)) {
          return;
        }
        break;
      case 231:
        call.left_tsc = {};
        result_.truth_.exit_status = static_cast<int64_t>(call.args[0]);
        result_.recording_.failure = {
            .kind = call.args[0] == 0 ? FailureKind::kNone : FailureKind::kExit,
            .signal = 0,
            .exit_status = static_cast<int32_t>(call.args[0]),
            .thread = tid,
            .ip = TraceeAddr(thread.registers.rip),
            .addr = {}};
        stopped_ = true;
        break;
      default:
        CLEW_CHECK(false, "guest system call {}", call.number);
    }
    if (call.result) {
      threads_[index].registers.gpr[kRax] = static_cast<uint64_t>(*call.result);
    }
    result_.data_->inputs[tid].push_back(call);
  }

  // False: the thread sleeps, its record comes when it is woken.
  bool Futex(size_t index, SyscallInput& call) {
    Thread& thread = threads_[index];
    const uint64_t addr = call.args[0];
    if ((call.args[1] & 0x7f) == 0) {
      if (IsRefused(call)) {
        call.result = -EAGAIN;
        return true;
      }
      thread.ready = false;
      thread.wait_addr = addr;
      call.left_tsc = {};
      pending_[thread.tid] = call;
      return false;
    }
    std::vector<size_t> asleep;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i].wait_addr == addr) {
        asleep.push_back(i);
      }
    }
    int64_t woken = 0;
    while (!asleep.empty() && static_cast<uint64_t>(woken) < call.args[2]) {
      const size_t pick = random_.Below(asleep.size());
      Wake(asleep[pick], 0);
      asleep.erase(asleep.begin() + static_cast<std::ptrdiff_t>(pick));
      ++woken;
    }
    call.result = woken;
    return true;
  }

  bool IsRefused(const SyscallInput& wait) const {
    uint32_t value = 0;
    memory_.Peek(wait.args[0], std::as_writable_bytes(std::span(&value, 1)));
    return value != static_cast<uint32_t>(wait.args[2]);
  }

  void BeginAWaitAnew() {
    std::vector<size_t> asleep;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (pending_.contains(threads_[i].tid)) {
        asleep.push_back(i);
      }
    }
    if (asleep.empty()) {
      return;
    }
    const size_t pick = asleep[random_.Below(asleep.size())];
    if (IsRefused(pending_.at(threads_[pick].tid))) {
      Wake(pick, -EAGAIN);
    }
  }

  void Wake(size_t index, int64_t result) {
    Thread& thread = threads_[index];
    thread.ready = true;
    thread.wait_addr = 0;
    thread.registers.gpr[kRax] = static_cast<uint64_t>(result);
    SyscallInput call = pending_.at(thread.tid);
    pending_.erase(thread.tid);
    call.result = result;
    call.left_tsc = CallTime();
    result_.data_->inputs[thread.tid].push_back(call);
  }

  // Slices were numbered as they began; consumers want them core by core.
  void NumberSlices() {
    auto& slices = result_.data_->slices;
    std::vector<Slice> sorted = slices;
    std::ranges::stable_sort(sorted, {}, [](const Slice& slice) {
      return std::pair(slice.core, slice.id);
    });
    std::vector<uint32_t> renumbered(slices.size());
    uint32_t on_core = 0;
    for (uint32_t i = 0; i < sorted.size(); ++i) {
      on_core = i > 0 && sorted[i].core == sorted[i - 1].core ? on_core + 1 : 0;
      renumbered[sorted[i].id] = i;
      sorted[i].id = i;
      sorted[i].on_core = on_core;
    }
    for (auto& [tid, blocks] : result_.data_->blocks) {
      for (StreamBlock& block : blocks) {
        block.slice = renumbered[block.slice];
        block.time.hi = std::min(block.time.hi, sorted[block.slice].time.hi);
      }
    }
    slices = std::move(sorted);
  }

  GuestRecording& result_;
  const GuestRecorderOptions& options_;
  Random random_;
  machine::Memory memory_;
  machine::CodeCache code_;
  std::vector<Thread> threads_;
  std::vector<std::optional<size_t>> running_;  // by core
  std::vector<uint32_t> slice_;                 // by core
  std::map<Tid, SyscallInput> pending_;
  uint64_t tick_ = 1;
  bool stopped_ = false;
};

GuestRecording GuestRecording::Make(void (*entry)(uint64_t), uint64_t argument,
                                    const GuestRecorderOptions& options) {
  GuestRecording result;
  GuestKernel(result, options).Run(entry, argument);
  const auto data = result.data_;
  result.recording_.open_streams =
      [data]() -> Result<std::unique_ptr<StreamSource>> {
    return std::make_unique<VectorStreams>(data->threads, data->slices,
                                           data->blocks);
  };
  result.recording_.open_inputs =
      [data]() -> Result<std::unique_ptr<InputSource>> {
    return std::make_unique<VectorInputs>(data->inputs);
  };
  return result;
}

}  // namespace clew::test
