#include "tests/litmus/on_machine.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "common/check.h"
#include "follower/recording.h"
#include "follower/run_schedule.h"
#include "machine/memory_models.h"
#include "tests/support/order_explorer.h"

namespace clew::test {
namespace {

using Kind = LitmusOp::Kind;

constexpr uint64_t kCodeAt = 0x400000;
constexpr uint64_t kThreadCodeBytes = 0x1000;
constexpr uint64_t kDataAt = 0x600000;
constexpr uint64_t kStackAt = 0x700000;
constexpr uint64_t kCloneFlags = 0x50f00;
constexpr int32_t kFirstTid = 100;

// Code of one thread: rbp is where the variables are, r8 to r15 take results.
class Assembler {
 public:
  void Add(const LitmusOp& op) {
    const auto reg = static_cast<uint8_t>(results_);
    CLEW_CHECK(results_ < 8, "too many results");
    switch (op.kind) {
      case Kind::kLoad:
        if (op.size_bytes >= 4) {
          Insn({Rex(op, true), 0x8b}, reg, op.at);
        } else {
          Insn({Rex(op, true), 0x0f,
                static_cast<uint8_t>(op.size_bytes == 2 ? 0xb7 : 0xb6)},
               reg, op.at);
        }
        break;
      case Kind::kStore:
        Bytes(op.size_bytes == 2 ? std::vector<uint8_t>{0x66}
                                 : std::vector<uint8_t>());
        Insn({Rex(op, false),
              static_cast<uint8_t>(op.size_bytes == 1 ? 0xc6 : 0xc7)},
             0, op.at);
        Number(op.value, std::min(op.size_bytes, 4u));
        break;
      case Kind::kCopy:
        Bytes(op.size_bytes == 2 ? std::vector<uint8_t>{0x66}
                                 : std::vector<uint8_t>());
        Insn({Rex(op, true),
              static_cast<uint8_t>(op.size_bytes == 1 ? 0x88 : 0x89)},
             static_cast<uint8_t>(op.value), op.at);
        break;
      case Kind::kIncrement:
        Lock(op);
        Insn({0x48, 0x83}, 0, op.at);
        Number(1, 1);
        break;
      case Kind::kAdd:
        SetResult(reg, op.value);
        Lock(op);
        Insn({0x4c, 0x0f, 0xc1}, reg, op.at);
        break;
      case Kind::kExchange:
        SetResult(reg, op.value);
        Insn({0x4c, 0x87}, reg, op.at);
        break;
      case Kind::kSwapIfZero:
        for (const uint8_t to : std::to_array<uint8_t>(
                 {0xb8, 0xba, 0xb9, 0xbb})) {  // eax, edx, ecx, ebx
          Bytes({to});
          Number(to == 0xbb ? op.value : 0, 4);
          ++insns_;
        }
        Lock(op);
        Insn({0x0f, 0xc7}, 1, op.at);
        Plain({0x48, 0xc1, 0xe2, 0x20});  // shl rdx, 32
        Plain({0x48, 0x09, 0xd0});        // or rax, rdx
        Plain({0x49, 0x89, static_cast<uint8_t>(0xc0 | reg)});
        break;
      case Kind::kFence:
        Plain({0x0f, 0xae, 0xf0});
        break;
      case Kind::kStoreFence:
        Plain({0x0f, 0xae, 0xf8});
        break;
      case Kind::kLoadFence:
        Plain({0x0f, 0xae, 0xe8});
        break;
    }
    results_ += HasResult(op.kind) ? 1 : 0;
  }
  void Plain(const std::vector<uint8_t>& bytes) {
    Bytes(bytes);
    ++insns_;
  }
  void Bytes(const std::vector<uint8_t>& bytes) {
    code_.insert(code_.end(), bytes.begin(), bytes.end());
  }
  void Number(uint64_t value, size_t size_bytes) {
    for (size_t i = 0; i < size_bytes; ++i) {
      code_.push_back(static_cast<uint8_t>(value >> (8 * i)));
    }
  }
  const std::vector<uint8_t>& code() const { return code_; }
  uint32_t insns() const { return insns_; }
  size_t results() const { return results_; }

 private:
  static uint8_t Rex(const LitmusOp& op, bool result) {
    return static_cast<uint8_t>(0x40 | (op.size_bytes == 8 ? 8 : 0) |
                                (result ? 4 : 0));
  }
  void Lock(const LitmusOp& op) {
    if (op.locked) {
      Bytes({0xf0});
    }
  }
  void SetResult(uint8_t reg, uint32_t value) {
    Bytes({0x41, static_cast<uint8_t>(0xb8 | reg)});
    Number(value, 4);
    ++insns_;
  }
  void Insn(const std::vector<uint8_t>& opcode, uint8_t reg, uint32_t at) {
    Bytes(opcode);
    Bytes({static_cast<uint8_t>(0x85 | reg << 3)});  // [rbp + disp32]
    Number(at, 4);
    ++insns_;
  }

  std::vector<uint8_t> code_;
  uint32_t insns_ = 0;
  size_t results_ = 0;
};

struct Recorded {
  std::vector<Tid> threads;
  std::vector<Slice> slices;
  std::map<Tid, std::vector<StreamBlock>> blocks;
  std::map<Tid, std::vector<InputRecord>> inputs;
  std::vector<size_t> results;  // by thread of the program
  follower::Recording recording;
};

class Streams final : public StreamSource {
 public:
  explicit Streams(const Recorded& recorded) : recorded_(recorded) {}
  const std::vector<Tid>& threads() const override { return recorded_.threads; }
  const std::vector<Slice>& slices() const override { return recorded_.slices; }
  Result<std::optional<StreamItem>> Next(Tid thread) override {
    const auto& blocks = recorded_.blocks.at(thread);
    size_t& next = next_[thread];
    return next == blocks.size() ? std::nullopt
                                 : std::optional(StreamItem(blocks[next++]));
  }

 private:
  const Recorded& recorded_;
  std::map<Tid, size_t> next_;
};

class Inputs final : public InputSource {
 public:
  explicit Inputs(const Recorded& recorded) : recorded_(recorded) {}
  Result<std::optional<InputRecord>> Next(Tid thread) override {
    const auto found = recorded_.inputs.find(thread);
    size_t& next = next_[thread];
    return found == recorded_.inputs.end() || next == found->second.size()
               ? std::nullopt
               : std::optional(found->second[next++]);
  }

 private:
  const Recorded& recorded_;
  std::map<Tid, size_t> next_;
};

void AddThread(Recorded& recorded, Tid tid) {
  recorded.threads.push_back(tid);
  const auto id = static_cast<uint32_t>(recorded.slices.size());
  Slice slice;
  slice.id = id;
  slice.core = CoreId(id);
  slice.thread = tid;
  slice.time = {TscTicks(0), TscTicks(~uint64_t{0})};
  recorded.slices.push_back(slice);
  recorded.blocks[tid];
}

void AddBlock(Recorded& recorded, size_t thread, uint64_t ip, uint32_t insns,
              bool is_syscall) {
  StreamBlock block;
  block.ip = TraceeAddr(ip);
  block.insn_count = insns;
  block.slice = static_cast<uint32_t>(thread);
  block.time = {TscTicks(0), TscTicks(~uint64_t{0})};
  block.is_syscall = is_syscall;
  recorded.blocks[recorded.threads[thread]].push_back(block);
}

void AddSegment(Recorded& recorded, uint64_t addr, uint64_t size_bytes,
                uint32_t prot, const std::vector<uint8_t>& bytes) {
  StartSegment segment;
  segment.addr = TraceeAddr(addr);
  segment.size_bytes = size_bytes;
  segment.prot = prot;
  for (const uint8_t byte : bytes) {
    segment.bytes.push_back(std::byte{byte});
  }
  recorded.recording.start.segments.push_back(std::move(segment));
}

// The first thread makes those of the program, one by one, and does no more.
std::unique_ptr<Recorded> Record(const LitmusProgram& program) {
  auto recorded = std::make_unique<Recorded>();
  StartState& start = recorded->recording.start;
  for (size_t i = 0; i <= program.size(); ++i) {
    AddThread(*recorded, Tid(kFirstTid + static_cast<int32_t>(i)));
  }
  Assembler main;
  for (size_t i = 1; i <= program.size(); ++i) {
    const uint64_t begin = kCodeAt + main.code().size();
    main.Bytes({0xb8});  // mov eax, clone
    main.Number(56, 4);
    AddBlock(*recorded, 0, begin, 1, false);
    AddBlock(*recorded, 0, kCodeAt + main.code().size(), 1, true);
    main.Bytes({0x0f, 0x05});
    const uint64_t after = kCodeAt + main.code().size();
    const uint64_t target = kCodeAt + i * kThreadCodeBytes;
    main.Bytes({0x85, 0xc0, 0x0f, 0x84});  // test eax, eax; jz target
    main.Number(target - (after + 8), 4);
    AddBlock(*recorded, 0, after, 2, false);
    AddBlock(*recorded, i, after, 2, false);
    SyscallInput call;
    call.number = 56;
    call.args = {kCloneFlags, kStackAt + 0x1000 - 64, 0, 0, 0, 0};
    call.result = recorded->threads[i].as_int();
    recorded->inputs[recorded->threads[0]].push_back(call);

    Assembler code;
    for (const LitmusOp& op : program[i - 1]) {
      code.Add(op);
    }
    code.Plain({0x48, 0x39, 0xc0});  // cmp rax, rax: flags of no meaning
    AddBlock(*recorded, i, target, code.insns(), false);
    AddSegment(*recorded, target, kThreadCodeBytes, kProtRead | kProtExec,
               code.code());
    recorded->results.push_back(code.results());
  }
  AddSegment(*recorded, kCodeAt, kThreadCodeBytes, kProtRead | kProtExec,
             main.code());
  AddSegment(*recorded, kDataAt, 0x1000, kProtRead | kProtWrite, {});
  AddSegment(*recorded, kStackAt, 0x1000, kProtRead | kProtWrite, {});
  start.first.thread = recorded->threads[0];
  start.first.rip = TraceeAddr(kCodeAt);
  return recorded;
}

}  // namespace

std::set<LitmusOutcome> OutcomesOnMachine(const LitmusProgram& program,
                                          MemoryModelKind model) {
  const auto recorded = Record(program);
  follower::Recording& recording = recorded->recording;
  recording.model = machine::MemoryModelOf(model);
  recording.open_streams = [&] { return std::make_unique<Streams>(*recorded); };
  recording.open_inputs = [&] { return std::make_unique<Inputs>(*recorded); };
  auto& start = recording.start.first.gpr;
  start[kRdi] = kCloneFlags;
  start[kRsi] = kStackAt + 0x1000 - 64;
  start[kRbp] = kDataAt;
  OrderExplorer explorer(recording);
  std::set<LitmusOutcome> outcomes;
  for (const auto& [digest, order] : explorer.ends()) {
    const auto session = follower::OpenedRecording::Open(recording).value();
    follower::Process process = session->start();
    const auto left =
        follower::RunSchedule(process, explorer.ScheduleOf(order));
    CLEW_CHECK(left && !*left, "the schedule of an end does not run: {}",
               left ? left->value_or("") : left.error().message);
    CLEW_CHECK(process.AllEnded().value(), "a schedule has no end");
    LitmusOutcome outcome;
    for (size_t i = 0; i < program.size(); ++i) {
      const auto& gpr = process.thread(i + 1).registers.gpr;
      const auto* const first = &gpr[kR8];
      outcome.results.emplace_back(first, first + recorded->results[i]);
    }
    outcome.memory.resize(kLitmusBytes);
    process.memory().Peek(kDataAt,
                          std::as_writable_bytes(std::span(outcome.memory)));
    outcomes.insert(std::move(outcome));
  }
  return outcomes;
}

}  // namespace clew::test
