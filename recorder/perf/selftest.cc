#include "recorder/perf/selftest.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "recorder/perf/perf_session.h"
#include "recorder/perf/pmu.h"

namespace clew::recorder::perf {
namespace {

constexpr uint64_t kSwitches = 10;
constexpr int kSleepsMax = 10'000;
constexpr int kLoops = 2'000'000;
constexpr size_t kPsbBytes = 16;

// Intel SDM vol. 3C, "Intel Processor Trace", "Packet Stream Boundary (PSB)
// Packet": 02 82, eight times.
bool HasPsb(std::span<const std::byte> bytes) {
  std::array<std::byte, kPsbBytes> psb;
  for (size_t i = 0; i < kPsbBytes; ++i) {
    psb[i] = std::byte{i % 2 == 0 ? uint8_t{0x02} : uint8_t{0x82}};
  }
  return !std::ranges::search(bytes, psb).empty();
}

int32_t OwnThread() { return static_cast<int32_t>(syscall(SYS_gettid)); }

// A PSB that wraps round the end of a ring is not seen; there are others.
class Tally final : public SessionSink {
 public:
  Status OnEvent(CoreId, const RecordView&, const Event& event) override {
    ++records;
    const auto* change = std::get_if<bundle::SwitchRecord>(&event.body);
    if (change != nullptr && change->out && event.id.thread == own_) {
      ++switches;
    }
    return {};
  }
  Status OnAux(CoreId, const AuxRingPiece& piece) override {
    aux_bytes += piece.size_bytes();
    has_psb = has_psb || HasPsb(piece.first) || HasPsb(piece.second);
    return {};
  }
  void OnGap(CoreId, const AuxGap&) override { ++gaps; }

  uint64_t records = 0;
  uint64_t switches = 0;
  uint64_t aux_bytes = 0;
  uint64_t gaps = 0;
  bool has_psb = false;

 private:
  Tid own_ = Tid(OwnThread());
};

// How often the kernel has switched this thread out.
uint64_t SwitchesOut() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
}

// Until the thread was switched out kSwitches times: a timer that fires before
// the thread has left its CPU, as on a busy host, makes no switch.
void Sleep() {
  const uint64_t wanted = SwitchesOut() + kSwitches;
  for (int i = 0; i < kSleepsMax && SwitchesOut() < wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The known loop: one conditional branch each time round.
void Loop() {
  for (volatile int i = 0; i < kLoops;) {
    i = i + 1;
  }
}

class SelfTest {
 public:
  SelfTest(PerfKernel& kernel, const std::string& sys, const std::string& proc)
      : kernel_(kernel), sys_(sys), proc_(proc) {}

  std::vector<SelfTestStep> Run() {
    const bool pmu = Step("pmu", true, "", [&] { return FindPmu(); });
    const bool sideband =
        Step("sideband", true, "", [&] { return OpenSideband(); });
    const char* no_sideband = "needs sideband";
    Step("switch records", sideband, no_sideband, [&] { return Switches(); });
    Step("sideband snapshot", sideband, no_sideband,
         [&] { return SnapshotSideband(); });
    Step("clock", sideband, no_sideband, [&] { return Clock(); });
    const bool pt = Step("pt", pmu && sideband, "needs pmu and sideband",
                         [&] { return OpenPt(); });
    Step("pt trace", pt, "needs pt", [&] { return TracePt(false); });
    Step("pt snapshot", pt, "needs pt", [&] { return TracePt(true); });
    return std::move(steps_);
  }

 private:
  // `run` gives what was seen, or an error. True if the step passed.
  template <class Body>
  bool Step(const char* name, bool possible, const char* needs, Body run) {
    if (!possible) {
      steps_.push_back({name, StepOutcome::kNotRun, needs});
      return false;
    }
    const Result<std::string> seen = run();
    steps_.push_back({name, seen ? StepOutcome::kPassed : StepOutcome::kFailed,
                      seen ? *seen : seen.error().message});
    return seen.has_value();
  }

  Result<PerfSession> Open(bool with_pt, bool snapshot) {
    PerfSessionOptions options = {.threads = {OwnThread()},
                                  .snapshot = snapshot,
                                  .sys = sys_,
                                  .proc = proc_};
    if (with_pt) {
      options.pt = PtOptions{.snapshot = snapshot};
    }
    return PerfSession::Open(kernel_, std::move(options));
  }

  Result<std::string> FindPmu() {
    CLEW_ASSIGN_OR_RETURN(pmu, Pmu::Discover(sys_));
    return fmt::format("type {}, mtc {}, cyc {}, {} address filters",
                       pmu.type(), pmu.capability("mtc"),
                       pmu.capability("psb_cyc"), pmu.address_filters_max());
  }

  Result<std::string> OpenSideband() {
    CLEW_ASSIGN_OR_RETURN(session, Open(false, false));
    return fmt::format("open on {} CPUs", session.cores().size());
  }

  Result<std::string> Switches() {
    CLEW_ASSIGN_OR_RETURN(session, Open(false, false));
    CLEW_RETURN_IF_ERROR(session.Enable());
    Sleep();
    CLEW_RETURN_IF_ERROR(session.Disable());
    Tally tally;
    CLEW_RETURN_IF_ERROR(session.Drain(tally));
    if (tally.switches < kSwitches) {
      return Unsupported("slept {} times, found {} switches, {} records lost",
                         kSwitches, tally.switches,
                         session.counts().lost_records);
    }
    return fmt::format("slept {} times, {} switches", kSwitches,
                       tally.switches);
  }

  Result<std::string> SnapshotSideband() {
    CLEW_ASSIGN_OR_RETURN(session, Open(false, true));
    CLEW_RETURN_IF_ERROR(session.Enable());
    Sleep();
    Tally tally;
    CLEW_RETURN_IF_ERROR(session.Snapshot(tally));
    if (tally.switches < kSwitches) {
      return Unsupported("slept {} times, found {} switches", kSwitches,
                         tally.switches);
    }
    return fmt::format("{} records", tally.records);
  }

  Result<std::string> Clock() {
    CLEW_ASSIGN_OR_RETURN(session, Open(false, false));
    CLEW_ASSIGN_OR_RETURN(conversion, session.Conversion());
    return fmt::format("shift {}, mult {}", conversion.shift, conversion.mult);
  }

  Result<std::string> OpenPt() {
    CLEW_ASSIGN_OR_RETURN(session, Open(true, false));
    return fmt::format("open on {} CPUs", session.cores().size());
  }

  Result<std::string> TracePt(bool snapshot) {
    CLEW_ASSIGN_OR_RETURN(session, Open(true, snapshot));
    CLEW_RETURN_IF_ERROR(session.Enable());
    Loop();
    Tally tally;
    if (snapshot) {
      CLEW_RETURN_IF_ERROR(session.Snapshot(tally));
    } else {
      CLEW_RETURN_IF_ERROR(session.Disable());
      CLEW_RETURN_IF_ERROR(session.Drain(tally));
    }
    if (!tally.has_psb) {
      return Unsupported("{} bytes of trace, wanted a PSB among them",
                         tally.aux_bytes);
    }
    return fmt::format("{} bytes of trace, {} gaps", tally.aux_bytes,
                       tally.gaps);
  }

  PerfKernel& kernel_;
  std::string sys_;
  std::string proc_;
  std::vector<SelfTestStep> steps_;
};

}  // namespace

std::vector<SelfTestStep> RunSelfTest(PerfKernel& kernel,
                                      const std::string& sys,
                                      const std::string& proc) {
  return SelfTest(kernel, sys, proc).Run();
}

}  // namespace clew::recorder::perf
