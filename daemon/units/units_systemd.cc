#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "daemon/loop/clock.h"
#include "daemon/units/units.h"

namespace clew::daemon {
namespace {

constexpr const char* kManager = "org.freedesktop.systemd1";
constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";

struct CloseBus {
  // Without a flush, which would wait for a bus daemon that is silent.
  void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};
using Bus = std::unique_ptr<sd_bus, CloseBus>;

// Waits for the bus daemon's welcome: one that stays silent is found here, and
// one that gives up on clients without a name (dbus-daemon(1), auth_timeout)
// never does so with us.
Status AwaitReady(sd_bus* bus, uint64_t answer_ms) {
  const uint64_t until_ns = SystemClock().MonotonicNs() + answer_ms * 1'000'000;
  for (int ready = 0; ready <= 0;) {
    const int done = sd_bus_process(bus, nullptr);
    ready = done < 0 ? done : sd_bus_is_ready(bus);
    if (ready < 0) {
      return SystemError(-ready, "cannot reach systemd by D-Bus");
    }
    const uint64_t now_ns = SystemClock().MonotonicNs();
    if (ready == 0 && now_ns >= until_ns) {
      return SystemError(ETIMEDOUT, "cannot reach systemd by D-Bus");
    }
    if (ready == 0 && done == 0) {
      (void)sd_bus_wait(bus, (until_ns - now_ns) / 1000);
    }
  }
  return {};
}

Result<Bus> OpenBus(uint64_t answer_ms) {
  sd_bus* opened = nullptr;
  const int status = sd_bus_open_system(&opened);
  if (status < 0) {
    return SystemError(-status, "cannot reach systemd by D-Bus");
  }
  Bus bus(opened);
  (void)sd_bus_set_method_call_timeout(opened, answer_ms * 1000);  // else 25 s
  CLEW_RETURN_IF_ERROR(AwaitReady(opened, answer_ms));
  return bus;
}

// The error of one question: of the unit where systemd itself gave it, of the
// connection otherwise (D-Bus Specification, "Standard error names").
class Refusal {
 public:
  Refusal() = default;
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
  ~Refusal() { sd_bus_error_free(&error_); }
  sd_bus_error* out() { return &error_; }
  Error Of(int status, const char* name) const {
    const std::string_view type = error_.name == nullptr ? "" : error_.name;
    const bool of_unit =
        type.starts_with("org.freedesktop.systemd1.") ||
        type.starts_with("org.freedesktop.DBus.Error.Unknown") ||
        type == "org.freedesktop.DBus.Error.InvalidArgs" ||
        type == "org.freedesktop.DBus.Error.AccessDenied";
    if (of_unit) {
      return {ErrorCode::kInvalidArgument,
              fmt::format("systemd does not tell {}: {}", name,
                          error_.message == nullptr ? type : error_.message)};
    }
    return SystemError(-status, fmt::format("systemd: cannot read {}", name))
        .error();
  }

 private:
  sd_bus_error error_ = {};
};

// Properties as org.freedesktop.systemd1(5) has them.
class Systemd final : public UnitManager {
 public:
  explicit Systemd(uint64_t answer_ms) : answer_ms_(answer_ms) {}

  Status Connect() override {
    bus_.reset();
    CLEW_ASSIGN_OR_RETURN(bus, OpenBus(answer_ms_));
    bus_ = std::move(bus);
    return {};
  }

  Result<UnitState> Get(const std::string& unit) override {
    char* encoded = nullptr;
    if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(),
                           &encoded) < 0) {
      return SystemError(ENOMEM, "cannot name a unit");
    }
    const std::unique_ptr<char, decltype(&free)> path(encoded, free);
    CLEW_ASSIGN_OR_RETURN(loaded, Text(encoded, kUnit, "LoadState"));
    if (loaded != "loaded" && loaded != "masked") {
      return InvalidArgument("systemd has no {}: its LoadState is {:?}", unit,
                             loaded);
    }
    UnitState state;
    CLEW_ASSIGN_OR_RETURN(active, Text(encoded, kUnit, "ActiveState"));
    state.active = active == "active" || active == "reloading";
    state.failed = active == "failed";
    CLEW_ASSIGN_OR_RETURN(cgroup, Text(encoded, kService, "ControlGroup"));
    state.cgroup = cgroup;
    CLEW_ASSIGN_OR_RETURN(restarts, Number<uint32_t>(encoded, "NRestarts"));
    state.restarts = restarts;
    CLEW_ASSIGN_OR_RETURN(process, Number<uint32_t>(encoded, "MainPID"));
    state.process = static_cast<int32_t>(process);
    CLEW_ASSIGN_OR_RETURN(code, Number<int32_t>(encoded, "ExecMainCode"));
    CLEW_ASSIGN_OR_RETURN(status, Number<int32_t>(encoded, "ExecMainStatus"));
    if (code == CLD_KILLED || code == CLD_DUMPED) {
      state.ended_by_signal = status;
    } else if (code == CLD_EXITED) {
      state.exit_status = status;
    }
    return state;
  }

 private:
  Result<std::string> Text(const char* path, const char* interface,
                           const char* name) {
    char* text = nullptr;
    Refusal refusal;
    const int status = sd_bus_get_property_string(
        bus_.get(), kManager, path, interface, name, refusal.out(), &text);
    if (status < 0) {
      return std::unexpected(refusal.Of(status, name));
    }
    const std::unique_ptr<char, decltype(&free)> owner(text, free);
    return std::string(text);
  }
  template <class Int>
  Result<Int> Number(const char* path, const char* name) {
    static_assert(sizeof(Int) == sizeof(int32_t));
    constexpr char kType = std::is_signed_v<Int> ? 'i' : 'u';
    Int value = 0;
    Refusal refusal;
    const int status =
        sd_bus_get_property_trivial(bus_.get(), kManager, path, kService, name,
                                    refusal.out(), kType, &value);
    if (status < 0) {
      return std::unexpected(refusal.Of(status, name));
    }
    return value;
  }
  uint64_t answer_ms_;
  Bus bus_;
};

}  // namespace

std::unique_ptr<UnitManager> SystemdByDbus(uint64_t answer_ms) {
  return std::make_unique<Systemd>(answer_ms);
}

}  // namespace clew::daemon
