// Goal: BlockWalk is libipt's block decoder, call by call: the same events at
// the same places, the same instructions between them, the same errors, for
// whatever bytes.
// Method: differential over random programs with random traces of them, which
// have each kind of event where the program runs, some of them damaged
// afterwards. Oracle: pt_blk_*. The same for code that is replaced on the way.
//
// A trace is made by walking the program: what BlockAt() says of the code
// decides what packets come next, but nothing is checked against it.

#include "decoder/pt/block_walk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "decoder/pt/packet.h"

namespace clew::decoder {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kCode = 0x400000;
constexpr uint64_t kCodeBytes = 1024;  // of each of two files, side by side
constexpr uint64_t kPieceBytes = 256;

void Append(Bytes& to, std::initializer_list<unsigned> bytes) {
  for (const unsigned byte : bytes) {
    to.push_back(static_cast<uint8_t>(byte));
  }
}

void AppendInt(Bytes& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    to.push_back(static_cast<uint8_t>(value >> 8 * i));
  }
}

// Instructions of all kinds that a decoder tells apart. Jumps lead anywhere
// near, also into the midst of an instruction or out of the code.
void AppendInsn(Bytes& code, std::mt19937_64& random) {
  const auto near = [&] { return static_cast<unsigned>(random() % 256); };
  const auto far = [&] {
    AppendInt(code, random() % (2 * kCodeBytes) - kCodeBytes, 4);
  };
  switch (random() % 32) {
    case 0:
    case 1:
    case 2:
      return Append(code, {0x70 + near() % 16, near()});  // Jcc
    case 3:
      Append(code, {0x0f, 0x80 + near() % 16});
      return far();
    case 4:
      return Append(code, {0xe0 + near() % 4, near()});  // LOOP, JCXZ
    case 5:
      return Append(code, {0xeb, near() % 64});  // JMP
    case 6:
      Append(code, {0xe9});
      return far();
    case 7:
    case 8:
      Append(code, {0xe8});  // CALL
      return far();
    case 9:
      return Append(code, {0xe8, 0, 0, 0, 0});
    case 10:
    case 11:
    case 12:
      return Append(code, {0xc3});  // RET
    case 13:
      return Append(code, {0xff, 0xe0});  // JMP RAX
    case 14:
      return Append(code, {0xff, 0xd0});  // CALL RAX
    case 15:
      return Append(code, {0x0f, 0x05});  // SYSCALL
    case 16:
      return Append(code, {0xcd, 0x80});  // INT
    case 17:
      return Append(code, {0xf3, 0x0f, 0xae, 0xe0});  // PTWRITE
    case 18:
      return Append(code, {0x0f, 0x22, 0xd8});  // MOV CR3
    case 19:
      return Append(code, {0x0f, 0x01, 0xc2 + near() % 2});  // VMLAUNCH
    case 20:
      return Append(code, {0x0f, 0xc7, 0x30});  // VMPTRLD
    case 21:
      return Append(code, {0x66, 0x0f, 0x1f, 0x44, 0, 0});
    case 22:
      return random() % 8 == 0 ? Append(code, {near(), near(), near()})
                               : Append(code, {0xcf});  // IRET
    default:
      return Append(code, {0x90});
  }
}

// No instruction is in two of the pieces of kPieceBytes: libipt's blocks know
// one no more whose bytes came to be in two mappings.
Bytes RandomCode(std::mt19937_64& random) {
  Bytes code;
  while (code.size() < kCodeBytes) {
    const size_t end = code.size() + kPieceBytes;
    while (code.size() < end - 16) {
      AppendInsn(code, random);
    }
    code.resize(end, 0x90);
  }
  return code;
}

// Walks a program and writes the trace of it.
class Tracer {
 public:
  Tracer(CodeImage::Impl& image, pt_exec_mode mode, std::mt19937_64& random)
      : image_(image), random_(random), mode_(mode) {}

  Bytes PerfTrace(int steps) {
    Psb();
    for (int i = 0; i < steps; ++i) {
      Step();
    }
    FlushTnt();
    return std::move(out_);
  }

 private:
  bool OneIn(uint64_t n) { return random_() % n == 0; }
  uint64_t RandomIp() { return kCode + random_() % (2 * kCodeBytes); }

  void FlushTnt() {
    if (tnt_bits_ > 0) {
      out_.push_back(static_cast<uint8_t>(2u << tnt_bits_ | tnt_ << 1));
    }
    tnt_ = 0;
    tnt_bits_ = 0;
  }
  void Tnt(bool taken) {
    tnt_ = tnt_ << 1 | (taken ? 1 : 0);
    if (++tnt_bits_ == 6) {
      FlushTnt();
    }
  }
  void Ip(unsigned opcode, uint64_t ip) {
    Append(out_, {0xc0 | opcode});
    AppendInt(out_, ip, 8);
  }
  void Tip(uint64_t ip) { Ip(0x0d, ip); }
  void Fup(uint64_t ip) { Ip(0x1d, ip); }
  void Mode() {
    Append(out_, {0x99, mode_ == ptem_64bit   ? 1u
                        : mode_ == ptem_32bit ? 2u
                                              : 0u});
  }

  void Psb() {
    for (int i = 0; i < 8; ++i) {
      Append(out_, {0x02, 0x82});
    }
    if (!OneIn(16)) {
      Mode();
    }
    if (OneIn(4)) {
      Append(out_, {0x99, 0x20});  // MODE.TSX
    }
    if (OneIn(8)) {
      Append(out_, {0x02, 0x43, 2, 0, 0, 0, 0, 0});  // PIP
    }
    if (on_) {
      Fup(ip_);
    }
    Append(out_, {0x02, 0x23});
  }

  void Step() {
    if (OneIn(40)) {
      FlushTnt();
      Psb();
    }
    if (!on_) {
      return Off();
    }
    const CodeBlock code = image_.BlockAt(ip_, mode_);
    if (OneIn(6) && code.insn_count > 0) {
      return EventIn(code);
    }
    Leave(code);
  }

  void Off() {
    if (OneIn(4)) {
      Elsewhere();
    }
    ip_ = RandomIp();
    Ip(0x11, ip_);  // TIP.PGE
    on_ = true;
  }

  void Elsewhere() {
    switch (random_() % 6) {
      case 0:
        return Append(out_, {0x02, 0x62});  // EXSTOP
      case 1:
        return Append(out_, {0x02, 0x03, 8, 0});  // CBR
      case 2:
        return Append(out_, {0x02, 0xa2, 0, 0, 0, 0, 0});  // PWRX
      case 3:
        return Append(out_, {0x02, 0x22, 0, 0});  // PWRE
      case 4:
        return Append(out_, {0x02, 0x43, 4, 0, 0, 0, 0, 0});  // PIP
      default:
        return Append(out_, {0x02, 0x12, 1, 2, 3, 4});  // PTW
    }
  }

  void Leave(const CodeBlock& code) {
    for (const CodeCall& call : image_.CallsOf(code)) {
      returns_.Push(call.returns_to);
    }
    switch (code.end) {
      case BlockEnd::kConditional: {
        const bool taken = OneIn(2);
        Tnt(taken);
        ip_ = taken ? code.target : code.next;
        return;
      }
      case BlockEnd::kGoesOn:
        ip_ = code.next;
        return;
      case BlockEnd::kReturn:
        if (!OneIn(3) && returns_.Pop(ip_)) {
          return Tnt(true);
        }
        break;
      case BlockEnd::kFails:
        FlushTnt();
        Append(out_, {0x02, 0xf3});
        ip_ = RandomIp();
        return Fup(ip_);
      default:
        break;
    }
    FlushTnt();
    if (OneIn(4) || code.last_class == ptic_far_call) {
      Append(out_, {0x01});  // TIP.PGD
      on_ = false;
      return;
    }
    ip_ = RandomIp();
    Tip(ip_);
  }

  // An event at one of the block's instructions.
  void EventIn(const CodeBlock& code) {
    const auto insns = image_.InsnsOf(code);
    FlushTnt();
    ip_ = insns[random_() % insns.size()];
    switch (random_() % 16) {
      case 0:
        Fup(ip_);
        Append(out_, {0x01});
        on_ = false;
        return;
      case 1:
        Fup(ip_);
        ip_ = RandomIp();
        return Tip(ip_);
      case 2:
        Append(out_, {0x02, 0xf3});
        if (OneIn(4)) {
          on_ = false;
          return;
        }
        return Fup(ip_);
      case 3:
        Append(out_, {0x99, 0x20u | static_cast<unsigned>(random_() % 2)});
        return Fup(ip_);
      case 4:
        Append(out_, {0x99, 0x22});  // a transaction is aborted
        Fup(ip_);
        ip_ = RandomIp();
        return Tip(ip_);
      case 5:
        Append(out_, {0x02, 0x12, 1, 2, 3, 4});  // PTW
        return;
      case 6:
        Append(out_, {0x02, 0x92, 1, 2, 3, 4});
        return Fup(ip_);
      case 7:
        Append(out_, {0x02, 0xe2});  // EXSTOP
        return Fup(ip_);
      case 8:
        Append(out_, {0x02, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0});  // MWAIT
        Append(out_, {0x02, 0x62});
        return Fup(ip_);
      case 9:
        return Append(out_, {0x02, 0x43, 2, 0, 0, 0, 0, 0});
      case 10:
        return Append(out_, {0x02, 0xc8, 1, 0, 0, 0, 0});  // VMCS
      case 11:
        Psb();
        return;
      case 12:
        Append(out_, {0x01});
        Append(out_, {0x02, 0x83});  // TraceStop
        on_ = false;
        return;
      case 13:
        Mode();
        ip_ = RandomIp();
        return Tip(ip_);
      case 14:
        Ip(0x01, RandomIp());  // TIP.PGD with an address
        on_ = false;
        return;
      default:
        return Elsewhere();
    }
  }

  CodeImage::Impl& image_;
  std::mt19937_64& random_;
  Bytes out_;
  pt_exec_mode mode_;
  bool on_ = true;
  uint64_t ip_ = kCode;
  ReturnStack returns_;
  uint64_t tnt_ = 0;
  int tnt_bits_ = 0;
};

// pt_blk_*, called as BlockWalk is.
class Oracle {
 public:
  Oracle(std::span<const std::byte> bytes, CodeImage::Impl& image,
         const CpuIdentity& cpu) {
    pt_config config = ConfigOver(bytes);
    if (cpu.is_intel) {
      config.cpu = {pcv_intel, cpu.family, cpu.model, cpu.stepping};
      (void)pt_cpu_errata(&config.errata, &config.cpu);
    }
    decoder_.reset(pt_blk_alloc_decoder(&config));
    pt_blk_set_image(decoder_.get(), image.image_.get());
  }
  int SyncSet(uint64_t offset) {
    return pt_blk_sync_set(decoder_.get(), offset);
  }
  int Next(pt_block& block) {
    return pt_blk_next(decoder_.get(), &block, sizeof block);
  }
  int Event(pt_event& event) {
    return pt_blk_event(decoder_.get(), &event, sizeof event);
  }
  uint64_t Offset() const {
    uint64_t offset = 0;
    return pt_blk_get_offset(decoder_.get(), &offset) < 0 ? 0 : offset;
  }

 private:
  std::unique_ptr<pt_block_decoder,
                  IptDeleter<pt_block_decoder, pt_blk_free_decoder>>
      decoder_;
};

std::string Describe(const pt_event& event) {
  const auto& of = event.variant;
  std::string text = fmt::format("event {}{}", static_cast<int>(event.type),
                                 event.status_update ? " status" : "");
  switch (event.type) {
    case ptev_async_disabled:
      text += fmt::format(" at {:x}", of.async_disabled.at);
      break;
    case ptev_async_branch:
      text += fmt::format(" {:x} to {:x}", of.async_branch.from,
                          of.async_branch.to);
      break;
    case ptev_exec_mode:
      text += fmt::format(" mode {}", static_cast<int>(of.exec_mode.mode));
      break;
    case ptev_enabled:
      text += of.enabled.resumed ? " resumed" : "";
      break;
    case ptev_pwre:
    case ptev_pwrx:
    case ptev_stop:
      return text;
    default:
      break;
  }
  if (event.ip_suppressed) {
    return text + " no ip";
  }
  const uint64_t ip = event.type == ptev_exec_mode      ? of.exec_mode.ip
                      : event.type == ptev_async_paging ? of.async_paging.ip
                                                        : of.enabled.ip;
  return text + fmt::format(" {:x}", ip);
}

// What a decoder tells, from each PSB on. Blocks may be cut differently where
// the trace was not asked, so those are told together. Code is only looked at
// in one mode: in another, libipt goes on with what it knows of the first.
template <class Decoder>
class Teller {
 public:
  // `on_event` is called for each event, with how many came before.
  Teller(Decoder& decoder, pt_exec_mode mode,
         std::function<void(size_t)> on_event)
      : decoder_(decoder), mode_(mode), on_event_(std::move(on_event)) {}

  std::vector<std::string> Tell(std::span<const std::byte> bytes) {
    for (auto psb = FindPsb(bytes, 0); psb; psb = FindPsb(bytes, *psb + 1)) {
      insns_ = 0;
      Say(fmt::format("PSB {:x}", *psb), 0);
      FromPsb(*psb);
    }
    return std::move(lines_);
  }

 private:
  // Steps in which the trace is not asked anything.
  static constexpr int kStalledMax = 20;

  void Say(const std::string& what, int status) {
    lines_.push_back(fmt::format("{}: {} instructions, at {:x}, status {}",
                                 what, insns_, decoder_.Offset(), status));
    insns_ = 0;
  }

  void FromPsb(uint64_t psb) {
    int status = decoder_.SyncSet(psb);
    int stalled = 0;
    pt_exec_mode mode = ptem_unknown;
    while (status >= 0 && stalled < kStalledMax) {
      if ((status & pts_event_pending) != 0) {
        pt_event event = {};
        status = decoder_.Event(event);
        Say(status < 0 ? "no event" : Describe(event), status);
        on_event_(events_++);
        stalled = 0;
        mode =
            event.type == ptev_exec_mode ? event.variant.exec_mode.mode : mode;
      } else if ((status & pts_eos) != 0) {
        return Say("end", status);
      } else if ((status & pts_ip_suppressed) == 0 && mode != mode_) {
        return Say("another mode", status);
      } else {
        status = Block(stalled);
      }
    }
    if (status < 0) {
      Say("error", status);
    }
  }

  int Block(int& stalled) {
    pt_block block = {};
    const int status = decoder_.Next(block);
    insns_ += block.ninsn;
    ++stalled;
    if (status >= 0 &&
        (block.iclass == ptic_cond_jump || block.iclass == ptic_return)) {
      Say(fmt::format("branch {:x} mode {}", block.end_ip,
                      static_cast<int>(block.mode)),
          status);
      stalled = 0;
    }
    return status;
  }

  Decoder& decoder_;
  pt_exec_mode mode_;
  std::function<void(size_t)> on_event_;
  std::vector<std::string> lines_;
  uint64_t insns_ = 0;
  size_t events_ = 0;
};

struct Seen {
  size_t lines = 0;
  size_t errors = 0;
  size_t events = 0;
};

void Count(const std::vector<std::string>& lines, Seen& seen) {
  seen.lines += lines.size();
  for (const std::string& line : lines) {
    seen.errors += line.starts_with("error") ? 1 : 0;
    seen.events += line.starts_with("event") ? 1 : 0;
  }
}

// Where the two differ first, with what came before; empty if they do not.
std::string Difference(const std::vector<std::string>& want,
                       const std::vector<std::string>& got) {
  const auto [at, other] = std::ranges::mismatch(want, got);
  if (at == want.end() && other == got.end()) {
    return {};
  }
  std::string text;
  for (auto line = at - std::min<ptrdiff_t>(at - want.begin(), 5); line != at;
       ++line) {
    text += *line + "\n";
  }
  return text + "libipt: " + (at == want.end() ? "" : *at) +
         "\nwe: " + (other == got.end() ? "" : *other);
}

// CLEW_BLOCK_WALK_PROGRAMS=N runs more of them.
uint64_t ProgramCount() {
  const char* const count = std::getenv("CLEW_BLOCK_WALK_PROGRAMS");
  return count == nullptr ? 15 : std::strtoull(count, nullptr, 10);
}

class BlockWalkTest : public testing::Test {
 protected:
  BlockWalkTest()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("clew-block-walk-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
    // libipt follows a loop that asks for nothing by recursion.
    rlimit limit = {};
    ::getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = rlim_t{64} << 20;
    ::setrlimit(RLIMIT_STACK, &limit);
  }
  ~BlockWalkTest() override { std::filesystem::remove_all(folder_); }

  void RunProgram(uint64_t number) {
    std::mt19937_64 random(number);
    for (std::string& file : files_) {
      file = File(fmt::format("{}", &file - files_), RandomCode(random));
    }
    for (int trace = 0; trace < 40; ++trace) {
      const std::string difference = RunTrace(number, random);
      ASSERT_EQ(difference, "") << "program " << number << " trace " << trace;
    }
  }

  Seen seen_;

 private:
  std::string File(const std::string& name, const Bytes& bytes) {
    const std::string path = folder_ / name;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  void Map(CodeImage::Impl& image) {
    ASSERT_GE(image.Map(files_[0], 0, kCodeBytes, kCode), 0);
    ASSERT_GE(image.Map(files_[1], 0, kCodeBytes, kCode + kCodeBytes), 0);
  }

  Bytes PerfTrace(SectionCache::Impl& cache, pt_exec_mode mode,
                  std::mt19937_64& random) {
    CodeImage::Impl image(cache);
    Map(image);
    Bytes bytes = Tracer(image, mode, random).PerfTrace(150);
    for (uint64_t damage = random() % 8; damage > 4; --damage) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    return bytes;
  }

  // Where a decoder and the oracle differ. A piece of the code is replaced when
  // so many events were told.
  std::string RunTrace(uint64_t number, std::mt19937_64& random) {
    // None, Broadwell with BDM64, Skylake with SKD022.
    constexpr CpuIdentity kCpus[] = {
        {}, {true, 6, 0x3d, 4}, {true, 6, 0x4e, 3}};
    constexpr pt_exec_mode kModes[] = {ptem_64bit, ptem_64bit, ptem_32bit,
                                       ptem_16bit};
    const CpuIdentity cpu = kCpus[number % std::size(kCpus)];
    const pt_exec_mode mode = kModes[random() % std::size(kModes)];
    // One of its own, as the files change; sometimes with little room.
    SectionCache::Impl cache(
        number % 5 == 0 ? 100'000 : SectionCache::kDefaultLimitBytes);
    const Bytes bytes = PerfTrace(cache, mode, random);
    const auto span = std::as_bytes(std::span(bytes));
    const uint64_t replaced_at = random() % 64;
    const uint64_t replaced_ip = kCode + random() % 8 * kPieceBytes;
    const auto tell = [&]<class Decoder>(std::type_identity<Decoder>) {
      CodeImage::Impl image(cache);
      Map(image);
      Decoder decoder(span, image, cpu);
      return Teller(decoder, mode,
                    [&](size_t events) {
                      if (events == replaced_at) {
                        ASSERT_GE(
                            image.Map(files_[2], 0, kPieceBytes, replaced_ip),
                            0);
                      }
                    })
          .Tell(span);
    };
    const auto want = tell(std::type_identity<Oracle>());
    Count(want, seen_);
    return Difference(want, tell(std::type_identity<BlockWalk>()));
  }

  std::filesystem::path folder_;
  std::string files_[3];
};

TEST_F(BlockWalkTest, IsLibiptsBlockDecoderCallByCall) {
  for (uint64_t program = 0; program < ProgramCount(); ++program) {
    RunProgram(program);
    if (HasFatalFailure()) {
      return;
    }
  }
  fmt::print("{} lines, {} events, {} errors\n", seen_.lines, seen_.events,
             seen_.errors);
  EXPECT_GT(seen_.events, 10000u);
  EXPECT_GT(seen_.lines - seen_.events - seen_.errors, 10000u);
}

}  // namespace
}  // namespace clew::decoder
