// What encoding costs: a table of synthetic event mixes and what the encoder
// takes for each event. An event is a branch that retires; instructions between
// branches cost the encoder nothing but time's advance.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "common/digest.h"
#include "recorder/pt_encoder/core_encoder.h"

namespace clew::recorder {
namespace {

constexpr int kRounds = 7;
constexpr uint64_t kEvents = 4'000'000;
constexpr uint64_t kInsnsPerEvent = 6;

// Takes everything and keeps nothing.
class NullSink final : public PtSink {
 public:
  std::span<uint8_t> Exchange(size_t) override { return room_; }

 private:
  std::vector<uint8_t> room_ = std::vector<uint8_t>(size_t{64} << 10);
};

struct Mix {
  const char* name;
  EncoderConfig config;
  // Encodes event i; `random` has 64 random bits.
  std::function<void(CoreEncoder&, uint64_t i, uint64_t random)> event;
};

EncoderConfig WithCyc() {
  EncoderConfig config;
  config.cyc = true;
  return config;
}

EncoderConfig ShortTnt() {
  EncoderConfig config;
  config.long_tnt = false;
  return config;
}

void EncodeConditional(CoreEncoder& encoder, uint64_t, uint64_t random) {
  encoder.Conditional((random & 1) != 0,
                      TraceeAddr(0x401000 + (random & 4095)));
}

void EncodeIndirect(CoreEncoder& encoder, uint64_t, uint64_t random) {
  encoder.IndirectJump(TraceeAddr(0x401000 + (random & 0xfffff)));
}

void EncodeCallOrReturn(CoreEncoder& encoder, uint64_t i, uint64_t) {
  if (i % 2 == 0) {
    encoder.DirectCall(TraceeAddr(0x401005), TraceeAddr(0x402000));
  } else {
    encoder.Return(TraceeAddr(0x401005));
  }
}

void EncodeSyscall(CoreEncoder& encoder, uint64_t, uint64_t) {
  encoder.FarTransfer();
  encoder.Enable(TraceeAddr(0x401002), EnableCause::kKernelReturn);
}

void EncodeAny(CoreEncoder& encoder, uint64_t i, uint64_t random) {
  const uint64_t kind = random >> 32 & 127;
  if (kind < 100) {
    EncodeConditional(encoder, i, random);
  } else if (kind < 122) {
    EncodeCallOrReturn(encoder, kind, random);
  } else if (kind < 127) {
    EncodeIndirect(encoder, i, random);
  } else {
    EncodeSyscall(encoder, i, random);
  }
}

struct Measured {
  double nanoseconds = 0;
  double bits = 0;
};

Measured MeasureOnce(const Mix& mix) {
  NullSink sink;
  CoreEncoder encoder(mix.config, sink);
  Random random(1);
  encoder.AdvanceTime(TscTicks(1));
  encoder.Enable(TraceeAddr(0x401000), EnableCause::kSwitchIn);
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < kEvents; ++i) {
    encoder.AdvanceTime(TscTicks(1 + i * kInsnsPerEvent));
    mix.event(encoder, i, random.Next());
  }
  encoder.Flush();
  const std::chrono::duration<double, std::nano> taken =
      std::chrono::steady_clock::now() - begin;
  return {taken.count() / kEvents,
          8.0 * static_cast<double>(encoder.bytes_written()) / kEvents};
}

void PrintRow(const Mix& mix) {
  std::vector<double> times;
  double bits = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Measured measured = MeasureOnce(mix);
    times.push_back(measured.nanoseconds);
    bits = measured.bits;
  }
  std::ranges::sort(times);
  const double median = times[kRounds / 2];
  fmt::print("{:<28} {:>8.2f} {:>7.2f}..{:<7.2f} {:>9.0f} {:>9.0f} {:>9.2f}\n",
             mix.name, median, times.front(), times.back(), 1e3 / median,
             1e3 * kInsnsPerEvent / median, bits);
}

void PrintTable() {
  fmt::print("{} events a round, {} rounds, {} instructions per event\n",
             kEvents, kRounds, kInsnsPerEvent);
  fmt::print("{:<28} {:>8} {:>16} {:>9} {:>9} {:>9}\n", "events", "ns/event",
             "min..max", "M ev/s", "M insn/s", "bit/event");
  const Mix mixes[] = {
      {"nothing (the loop)", {}, [](CoreEncoder&, uint64_t, uint64_t) {}},
      {"conditional", {}, EncodeConditional},
      {"conditional, short TNT", ShortTnt(), EncodeConditional},
      {"conditional, CYC", WithCyc(), EncodeConditional},
      {"call and return", {}, EncodeCallOrReturn},
      {"indirect jump", {}, EncodeIndirect},
      {"system call and return", {}, EncodeSyscall},
      {"mixed", {}, EncodeAny},
  };
  for (const Mix& mix : mixes) {
    PrintRow(mix);
  }
}

}  // namespace
}  // namespace clew::recorder

int main() {
  clew::recorder::PrintTable();
  return 0;
}
