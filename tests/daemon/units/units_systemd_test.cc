// Goal: units are watched by real D-Bus: a bus that is restarted, one that is
// silent, and a unit that is not there.
// Method: a dbus-daemon of the test's own, and on it somebody who answers as
// systemd does, with the properties that the test says.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/check.h"
#include "daemon/units/units.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using test::kHangMs;
using test::Process;
using test::Scratch;
using test::WaitUntil;

constexpr const char* kDbus = "/usr/bin/dbus-daemon";
constexpr const char* kUnits = "/org/freedesktop/systemd1/unit";

// Answers for a.service; any other unit is not found, as systemd has it.
class FakeSystemd {
 public:
  explicit FakeSystemd(const std::string& address)
      : thread_([this, address] { Serve(address); }) {
    CLEW_CHECK(WaitUntil([this] { return ready_.load(); }), "no systemd1");
  }
  FakeSystemd(const FakeSystemd&) = delete;
  FakeSystemd& operator=(const FakeSystemd&) = delete;
  ~FakeSystemd() {
    stop_ = true;
    thread_.join();
  }
  std::atomic<bool> failed = false;

 private:
  static int Property(sd_bus*, const char* path, const char*, const char* name,
                      sd_bus_message* reply, void* self, sd_bus_error*) {
    const auto* systemd = static_cast<FakeSystemd*>(self);
    const std::string property = name;
    const bool known = std::string(path).ends_with("/a_2eservice");
    if (property == "LoadState") {
      return sd_bus_message_append(reply, "s", known ? "loaded" : "not-found");
    }
    if (property == "ActiveState") {
      return sd_bus_message_append(reply, "s",
                                   systemd->failed ? "failed" : "active");
    }
    if (property == "ControlGroup") {
      return sd_bus_message_append(reply, "s", "/system.slice/a.service");
    }
    if (property.starts_with("ExecMain")) {
      return sd_bus_message_append(
          reply, "i", property == "ExecMainCode" ? CLD_KILLED : SIGSEGV);
    }
    return sd_bus_message_append(reply, "u", property == "MainPID" ? 7 : 0);
  }
  static int Found(sd_bus*, const char*, const char*, void* self, void** found,
                   sd_bus_error*) {
    *found = self;
    return 1;
  }
  void Serve(const std::string& address) {
    static const sd_bus_vtable kUnit[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("LoadState", "s", Property, 0, 0),
        SD_BUS_PROPERTY("ActiveState", "s", Property, 0, 0), SD_BUS_VTABLE_END};
    static const sd_bus_vtable kService[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("ControlGroup", "s", Property, 0, 0),
        SD_BUS_PROPERTY("NRestarts", "u", Property, 0, 0),
        SD_BUS_PROPERTY("MainPID", "u", Property, 0, 0),
        SD_BUS_PROPERTY("ExecMainCode", "i", Property, 0, 0),
        SD_BUS_PROPERTY("ExecMainStatus", "i", Property, 0, 0),
        SD_BUS_VTABLE_END};
    sd_bus* bus = nullptr;
    CLEW_CHECK(sd_bus_new(&bus) >= 0, "no bus");
    const std::string base = "org.freedesktop.systemd1";
    CLEW_CHECK(sd_bus_set_address(bus, address.c_str()) >= 0 &&
                   sd_bus_set_bus_client(bus, 1) >= 0 &&
                   sd_bus_start(bus) >= 0 &&
                   sd_bus_add_fallback_vtable(bus, nullptr, kUnits,
                                              (base + ".Unit").c_str(), kUnit,
                                              Found, this) >= 0 &&
                   sd_bus_add_fallback_vtable(bus, nullptr, kUnits,
                                              (base + ".Service").c_str(),
                                              kService, Found, this) >= 0 &&
                   sd_bus_request_name(bus, base.c_str(), 0) >= 0,
               "cannot be systemd");
    ready_ = true;
    while (!stop_) {
      const int done = sd_bus_process(bus, nullptr);
      if (done < 0) {
        break;  // the bus daemon is gone
      }
      if (done == 0) {
        sd_bus_wait(bus, 10'000);
      }
    }
    sd_bus_close_unref(bus);
  }
  std::atomic<bool> ready_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class UnitsSystemdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access(kDbus, X_OK) != 0) {
      GTEST_SKIP() << kDbus << " is not here (package dbus)";
    }
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address().c_str(), 1);
    // systemd's documentation, ENVIRONMENT.md: of a call for which nobody has
    // set a time. One that nobody answers never ends then.
    setenv("SYSTEMD_BUS_TIMEOUT", "1h", 1);
    AskWithin(kHangMs);
  }
  std::string address() const { return "unix:path=" + scratch_.Path("bus"); }
  void StartBus() {
    std::filesystem::remove(scratch_.Path("bus"));
    bus_ = std::make_unique<Process>(
        std::vector<std::string>{kDbus, "--session", "--nofork", "--nopidfile",
                                 "--address=" + address()},
        scratch_.Path("log"));
    ASSERT_TRUE(WaitUntil([this] {
      return test::Accepts(scratch_.Path("bus"));
    })) << test::ReadText(scratch_.Path("log"));
    systemd_ = std::make_unique<FakeSystemd>(address());
  }
  void StopBus() {
    bus_.reset();
    systemd_.reset();
  }
  // Asks with this much time for an answer from now on.
  void AskWithin(uint64_t answer_ms) {
    manager_ = SystemdByDbus(answer_ms);
    watch_ = UnitWatch(manager_.get(), scratch_.root());
    watch_.SetUnits({{"a.service", true, 0, ""}, {"0.service", true, 0, ""}});
  }
  // The report of a.service; 0.service is asked before it.
  UnitReport A() const { return watch_.Report(now_ms_).at(1); }
  std::vector<UnitEvent> Poll() {
    return watch_.Poll(now_ms_ += UnitWatch::kPauseMsMax);
  }
  Scratch scratch_;
  std::unique_ptr<UnitManager> manager_;
  UnitWatch watch_{nullptr, scratch_.root()};
  std::unique_ptr<Process> bus_;
  std::unique_ptr<FakeSystemd> systemd_;
  uint64_t now_ms_ = 0;
};

TEST_F(UnitsSystemdTest, ARestartOfTheBusIsSurvived) {
  EXPECT_TRUE(Poll().empty());
  EXPECT_NE(watch_.error(), "") << "there is no bus yet";
  StartBus();
  EXPECT_TRUE(Poll().empty());
  ASSERT_TRUE(A().state.has_value()) << A().error;
  EXPECT_TRUE(A().state.value_or(UnitState()).active);
  EXPECT_EQ(watch_.error(), "");
  StopBus();
  EXPECT_TRUE(Poll().empty());
  EXPECT_FALSE(A().state.has_value());
  EXPECT_NE(watch_.error(), "");
  StartBus();
  systemd_->failed = true;
  const auto events = Poll();
  ASSERT_EQ(events.size(), 1u) << A().error;
  EXPECT_EQ(events[0].unit, "a.service");
  EXPECT_EQ(events[0].process, 7);
  EXPECT_EQ(events[0].failure.signal, SIGSEGV);
}

TEST_F(UnitsSystemdTest, AUnitThatIsNotThereIsNamedAndHidesNoOther) {
  StartBus();
  EXPECT_TRUE(Poll().empty());
  EXPECT_NE(watch_.Report(now_ms_)[0].error.find("not-found"),
            std::string::npos);
  EXPECT_TRUE(A().state.has_value()) << A().error;
}

// While it is silent somebody who waits for it waits for an hour at least.
TEST_F(UnitsSystemdTest, ABusThatIsSilentHoldsNobodyUp) {
  AskWithin(kSystemdAnswerMs);
  StartBus();
  // Once while there is no connection, and once while there is one.
  for (const bool connected : {false, true}) {
    SCOPED_TRACE(connected);
    if (connected) {
      ASSERT_TRUE(WaitUntil([&] { return Poll().empty() && A().state; }))
          << A().error;
    }
    bus_->Stop();
    auto polls = std::async(std::launch::async, [&] {
      const size_t events = Poll().size();
      return events + Poll().size();
    });
    const auto waited = polls.wait_for(std::chrono::milliseconds(kHangMs));
    EXPECT_NE(watch_.error(), "");
    bus_->Signal(SIGCONT);  // in any case, so that the polls end
    EXPECT_EQ(waited, std::future_status::ready) << "they wait for the bus";
    EXPECT_EQ(polls.get(), 0u);
  }
  ASSERT_TRUE(WaitUntil([&] { return Poll().empty() && A().state; }))
      << A().error;
}

}  // namespace
}  // namespace clew::daemon
