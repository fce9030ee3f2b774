#include "tests/decoder/synthetic.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "bundle/perf_data/perf_data_writer.h"
#include "common/digest.h"
#include "common/os/file.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/software/encoder_description.h"
#include "tests/decoder/code_base.h"

namespace clew::decoder {
namespace {

using bundle::MmapRecord;
using bundle::PerfData;
using bundle::PerfDataConfig;
using bundle::PerfDataWriter;
using bundle::RecordOrigin;
using recorder::EnableCause;

constexpr uint64_t kFarLibraryBase = 0x7f1234500000;
// In reach of direct branches.
constexpr uint64_t kNearLibraryBase = kCodeBase + 0x100000;
constexpr uint32_t kBlocks = 150;
constexpr int32_t kProcess = 4000;

// How a basic block ends.
enum class End : uint8_t {
  kCond,
  kJump,
  kCall,
  kReturn,
  kIndirectJump,
  kIndirectCall,
  kSyscall,
  kRep,  // and falls through to the next block
};

struct Block {
  uint64_t addr = 0;
  uint32_t nops = 0;
  End end = End::kJump;
  uint32_t target = 0;  // block
  uint64_t EndAddr() const { return addr + nops; }
};

uint64_t EndSize(End end) {
  switch (end) {
    case End::kCond:
      return 6;
    case End::kJump:
    case End::kCall:
      return 5;
    case End::kReturn:
      return 1;
    default:
      return 2;
  }
}

class Program {
 public:
  Program(Random& random, bool has_library, bool linked_directly)
      : library_(has_library ? kBlocks / 2 : kBlocks),
        base_of_library_(linked_directly ? kNearLibraryBase : kFarLibraryBase) {
    uint64_t addr = kCodeBase;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      addr = i == library_ ? base_of_library_ : addr;
      Block block;
      block.addr = addr;
      block.nops = static_cast<uint32_t>(random.Below(9));
      block.end = RandomEnd(random);
      if (i + 1 == kBlocks || i + 1 == library_) {
        block.end = End::kIndirectJump;  // nothing to fall through to
      }
      // Direct jumps and calls go forward: how often a loop of them went round
      // until it was interrupted, no trace tells.
      const bool direct = block.end == End::kJump || block.end == End::kCall;
      const uint32_t of_file = linked_directly || i < library_ ? 0 : library_;
      const uint32_t first = direct ? i + 1 : of_file;
      const uint32_t end =
          linked_directly || i >= library_ ? kBlocks : library_;
      block.target = first + static_cast<uint32_t>(random.Below(end - first));
      if (block.end == End::kCond && block.target == i + 1) {
        block.target = i;  // taken or not must make a difference
      }
      addr += block.nops + EndSize(block.end);
      blocks_.push_back(block);
    }
  }

  const Block& At(uint32_t index) const { return blocks_[index]; }
  uint64_t base_of_library() const { return base_of_library_; }

  std::vector<std::byte> Bytes() const { return Encode(0, library_); }
  std::vector<std::byte> LibraryBytes() const {
    return Encode(library_, kBlocks);
  }

 private:
  std::vector<std::byte> Encode(uint32_t begin, uint32_t end) const {
    std::vector<std::byte> out;
    const auto put = [&out](std::initializer_list<uint8_t> bytes) {
      for (const uint8_t byte : bytes) {
        out.push_back(std::byte{byte});
      }
    };
    for (const Block& block : std::span(blocks_).subspan(begin, end - begin)) {
      out.insert(out.end(), block.nops, std::byte{0x90});
      const uint64_t next = block.EndAddr() + EndSize(block.end);
      const auto relative =
          static_cast<uint32_t>(blocks_[block.target].addr - next);
      const auto byte = [relative](int i) {
        return static_cast<uint8_t>(relative >> (8 * i));
      };
      switch (block.end) {
        case End::kCond:
          put({0x0f, 0x84, byte(0), byte(1), byte(2), byte(3)});
          break;
        case End::kJump:
          put({0xe9, byte(0), byte(1), byte(2), byte(3)});
          break;
        case End::kCall:
          put({0xe8, byte(0), byte(1), byte(2), byte(3)});
          break;
        case End::kReturn:
          put({0xc3});
          break;
        case End::kIndirectJump:
          put({0xff, 0xe0});
          break;
        case End::kIndirectCall:
          put({0xff, 0xd0});
          break;
        case End::kSyscall:
          put({0x0f, 0x05});
          break;
        case End::kRep:
          put({0xf3, 0xa4});
          break;
      }
    }
    return out;
  }

  static End RandomEnd(Random& random) {
    // Mostly branches, as in real code; the rest evenly.
    const uint64_t kind = random.Below(16);
    return kind < 8 ? End::kCond : static_cast<End>(kind % 8);
  }

  uint32_t library_;  // the first block of the other file
  uint64_t base_of_library_;
  std::vector<Block> blocks_;
};

struct Thread {
  Tid tid;
  uint32_t block = 0;
  uint32_t in_block = 0;  // nops done
  std::vector<uint32_t> returns;
  bool on_core = false;
  bool in_kernel = true;
};

struct Core {
  CoreId id;
  recorder::VectorSink sink;
  std::unique_ptr<recorder::CoreEncoder> encoder;
  Thread* thread = nullptr;
};

class Machine {
 public:
  Machine(const SyntheticConfig& config, Synthetic& out)
      : config_(config),
        random_(config.seed),
        program_(random_, config.has_library, config.linked_directly),
        out_(out) {}

  Status Run() {
    CLEW_RETURN_IF_ERROR(Start());
    while (done_ < config_.insns) {
      Core& core = cores_[random_.Below(cores_.size())];
      const uint64_t quantum = 1 + random_.Below(60);
      for (uint64_t i = 0; i < quantum; ++i) {
        CLEW_RETURN_IF_ERROR(Step(core));
      }
    }
    for (Core& core : cores_) {
      CLEW_RETURN_IF_ERROR(Stop(core));
    }
    return Finish();
  }

 private:
  Status Start() {
    PerfDataConfig config;
    config.core_count = config_.cores;
    recorder::DescribeEncoder(config_.encoder, config);
    CLEW_ASSIGN_OR_RETURN(
        writer,
        PerfDataWriter::Create(PosixFileSystem(), out_.perf_path, config));
    writer_ = std::make_unique<PerfDataWriter>(std::move(writer));
    for (uint32_t i = 0; i < config_.threads; ++i) {
      Thread thread;
      thread.tid = Tid(kProcess + static_cast<int32_t>(i));
      thread.block = static_cast<uint32_t>(random_.Below(kBlocks));
      threads_.push_back(thread);
    }
    cores_ = std::vector<Core>(config_.cores);
    for (uint32_t i = 0; i < config_.cores; ++i) {
      cores_[i].id = CoreId(i);
      cores_[i].encoder = std::make_unique<recorder::CoreEncoder>(
          config_.encoder, cores_[i].sink);
    }
    CLEW_RETURN_IF_ERROR(
        writer_->AddComm(Origin(threads_[0], cores_[0]), "synthetic", true));
    if (!out_.path_of_library.empty()) {
      out_.base_of_library = TraceeAddr(program_.base_of_library());
      CLEW_RETURN_IF_ERROR(Map(out_.path_of_library, program_.base_of_library(),
                               program_.LibraryBytes()));
    }
    return Map(out_.code_path, kCodeBase, program_.Bytes());
  }

  Status Map(const std::string& path, uint64_t addr,
             const std::vector<std::byte>& code) {
    CLEW_RETURN_IF_ERROR(WriteWholeFile(PosixFileSystem(), path, code));
    return writer_->AddMmap2(
        Origin(threads_[0], cores_[0]),
        {.addr = TraceeAddr(addr),
         .size_bytes = code.size(),
         .file_offset = 0,
         .prot = 5,
         .flags = 2,
         .path = path,
         .build_id = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}});
  }

  RecordOrigin Origin(const Thread& thread, const Core& core) const {
    return {.process = kProcess,
            .thread = thread.tid,
            .time = TscTicks(now_),
            .core = core.id};
  }

  bool Chance(uint64_t one_in) {
    return one_in != 0 && random_.Below(one_in) == 0;
  }

  void Tick(Core& core, uint64_t ticks) {
    now_ += ticks;
    core.encoder->AdvanceTime(TscTicks(now_));
  }

  uint64_t Ip(const Thread& thread) const {
    return program_.At(thread.block).addr + thread.in_block;
  }

  Status SwitchIn(Core& core) {
    std::vector<Thread*> ready;
    for (Thread& thread : threads_) {
      if (!thread.on_core) {
        ready.push_back(&thread);
      }
    }
    if (ready.empty()) {
      return {};
    }
    core.thread = ready[random_.Below(ready.size())];
    core.thread->on_core = true;
    Tick(core, 1 + random_.Below(50));
    CLEW_RETURN_IF_ERROR(writer_->AddSwitchIn(Origin(*core.thread, core)));
    core.encoder->Enable(TraceeAddr(Ip(*core.thread)), EnableCause::kSwitchIn);
    core.thread->in_kernel = false;
    return {};
  }

  // From the kernel.
  Status SwitchOut(Core& core) {
    Tick(core, random_.Below(5));
    CLEW_RETURN_IF_ERROR(
        writer_->AddSwitchOut(Origin(*core.thread, core), true));
    core.thread->on_core = false;
    core.thread = nullptr;
    return {};
  }

  Status Step(Core& core) {
    if (core.thread == nullptr) {
      if (Chance(3)) {
        return SwitchIn(core);
      }
      Tick(core, 1);
      return {};
    }
    Thread& thread = *core.thread;
    if (thread.in_kernel) {
      return LeaveKernel(core);
    }
    if (Chance(config_.interrupt_one_in)) {
      Interrupt(core);
      return {};
    }
    Execute(core);
    if (config_.overflows && Chance(3000) && !thread.in_kernel) {
      core.encoder->Overflow(TraceeAddr(Ip(thread)));
    }
    return {};
  }

  void Interrupt(Core& core) {
    core.encoder->Interrupt(TraceeAddr(Ip(*core.thread)));
    core.thread->in_kernel = true;
    auto& truth = out_.truth[core.thread->tid];
    if (!truth.empty() && !after_syscall_[core.thread->tid]) {
      truth.back().interrupted = true;
    }
  }

  Status LeaveKernel(Core& core) {
    Thread& thread = *core.thread;
    if (Chance(3)) {
      return SwitchOut(core);
    }
    Tick(core, 1 + random_.Below(20));
    if (Chance(10)) {  // a signal
      thread.block = static_cast<uint32_t>(random_.Below(kBlocks));
      thread.in_block = 0;
    }
    core.encoder->Enable(TraceeAddr(Ip(thread)), EnableCause::kKernelReturn);
    thread.in_kernel = false;
    return {};
  }

  void Execute(Core& core) {
    Thread& thread = *core.thread;
    const Block& block = program_.At(thread.block);
    Tick(core, Chance(config_.idle_one_in) ? random_.Below(1000000)
                                           : 1 + random_.Below(3));
    out_.truth[thread.tid].push_back(
        {TraceeAddr(Ip(thread)), TscTicks(now_), core.id, false});
    ++done_;
    after_syscall_[thread.tid] = false;
    if (thread.in_block < block.nops) {
      ++thread.in_block;
      return;
    }
    ExecuteEnd(core, thread, block);
  }

  void GoTo(Thread& thread, uint32_t block) {
    thread.block = block;
    thread.in_block = 0;
  }

  void ExecuteEnd(Core& core, Thread& thread, const Block& block) {
    const uint32_t next = thread.block + 1;
    const auto addr = [this](uint32_t index) {
      return TraceeAddr(program_.At(index).addr);
    };
    const auto any = static_cast<uint32_t>(random_.Below(kBlocks));
    recorder::CoreEncoder& encoder = *core.encoder;
    switch (block.end) {
      case End::kCond: {
        const bool taken = random_.Below(2) == 0;
        GoTo(thread, taken ? block.target : next);
        encoder.Conditional(taken, addr(thread.block));
        break;
      }
      case End::kJump:
        GoTo(thread, block.target);
        break;
      case End::kCall:
        thread.returns.push_back(next);
        GoTo(thread, block.target);
        encoder.DirectCall(addr(next), addr(block.target));
        break;
      case End::kReturn: {
        uint32_t to = any;
        if (!thread.returns.empty()) {
          to = thread.returns.back();
          thread.returns.pop_back();
        }
        GoTo(thread, to);
        encoder.Return(addr(to));
        break;
      }
      case End::kIndirectJump:
        GoTo(thread, any);
        encoder.IndirectJump(addr(any));
        break;
      case End::kIndirectCall:
        thread.returns.push_back(next);
        GoTo(thread, any);
        encoder.IndirectCall(addr(next), addr(any));
        break;
      case End::kSyscall:
        GoTo(thread, next);
        encoder.FarTransfer();
        thread.in_kernel = true;
        after_syscall_[thread.tid] = true;
        break;
      case End::kRep:
        GoTo(thread, next);
        break;
    }
  }

  Status Stop(Core& core) {
    if (core.thread != nullptr) {
      if (!core.thread->in_kernel) {
        Interrupt(core);
      }
      CLEW_RETURN_IF_ERROR(SwitchOut(core));
    }
    core.encoder->Flush();
    out_.pt[core.id] = core.sink.bytes();
    return {};
  }

  Status Finish() {
    for (Core& core : cores_) {
      const std::string path =
          fmt::format("{}/core{}.pt", out_.folder, core.id);
      const auto bytes = std::as_bytes(std::span(core.sink.bytes()));
      CLEW_RETURN_IF_ERROR(WriteWholeFile(PosixFileSystem(), path, bytes));
      CLEW_RETURN_IF_ERROR(
          writer_->AddAux(Origin(threads_[0], core), 0, bytes.size(), 0));
      CLEW_RETURN_IF_ERROR(writer_->AddAuxtrace(core.id, path));
    }
    return writer_->Finish();
  }

  const SyntheticConfig& config_;
  Random random_;
  Program program_;
  Synthetic& out_;
  std::unique_ptr<PerfDataWriter> writer_;
  std::vector<Thread> threads_;
  std::vector<Core> cores_;
  std::map<Tid, bool> after_syscall_;
  uint64_t now_ = 1000;
  uint64_t done_ = 0;
};

}  // namespace

Synthetic::~Synthetic() {
  if (!folder.empty()) {
    std::filesystem::remove_all(folder);
  }
}

TraceConfig Synthetic::Config() const {
  TraceConfig config;
  config.branches_before_timing = true;
  config.tsc_at_switches = true;
  config.resolve_image = [](const MmapRecord& mapping) {
    return std::filesystem::exists(mapping.path) ? mapping.path : std::string();
  };
  return config;
}

SyntheticConfig RandomSyntheticConfig(uint64_t seed, Random& random) {
  recorder::EncoderConfig encoder;
  encoder.return_compression = random.Below(2) == 0;
  encoder.long_tnt = random.Below(2) == 0;
  encoder.psb_period_bytes = 256u << random.Below(8);
  encoder.cyc = random.Below(3) == 0;
  encoder.mtc = encoder.cyc || random.Below(5) != 0;
  encoder.mtc_period = static_cast<uint32_t>(random.Below(12));
  encoder.tsc_ctc_denominator = 1 + static_cast<uint32_t>(random.Below(3));
  encoder.tsc_ctc_numerator =
      encoder.tsc_ctc_denominator + static_cast<uint32_t>(random.Below(100));
  SyntheticConfig config;
  config.seed = seed;
  config.cores = 1 + static_cast<uint32_t>(random.Below(4));
  config.threads = 1 + static_cast<uint32_t>(random.Below(6));
  config.insns = 5000;
  config.encoder = encoder;
  return config;
}

std::unique_ptr<Synthetic> MakeSynthetic(const SyntheticConfig& config) {
  auto out = std::make_unique<Synthetic>();
  std::string folder = testing::TempDir() + "clew-synthetic-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  out->folder = folder;
  out->perf_path = folder + "/perf.data";
  out->code_path = folder + "/code";
  out->path_of_library = config.has_library ? folder + "/library" : "";
  const Status status = Machine(config, *out).Run();
  EXPECT_TRUE(status) << status.error().message;
  return out;
}

std::unique_ptr<PerfTrace> LoadTrace(const Synthetic& synthetic,
                                     bool like_hardware) {
  TraceConfig config = synthetic.Config();
  config.branches_before_timing = !like_hardware;
  auto data = PerfData::Open(synthetic.perf_path);
  EXPECT_TRUE(data) << data.error().message;
  auto trace = PerfTrace::Load(std::move(*data), config);
  EXPECT_TRUE(trace) << trace.error().message;
  return std::move(*trace);
}

}  // namespace clew::decoder
