#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>

#include "daemon/units.h"

namespace clew::daemon {
namespace {

constexpr uint64_t kAnswerUs = 200'000;
constexpr const char* kManager = "org.freedesktop.systemd1";
constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";

struct CloseBus {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
using Bus = std::unique_ptr<sd_bus, CloseBus>;

// Properties as org.freedesktop.systemd1(5) has them.
class Systemd final : public UnitManager {
 public:
  explicit Systemd(Bus bus) : bus_(std::move(bus)) {}

  Result<UnitState> Get(const std::string& unit) override {
    char* encoded = nullptr;
    if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(),
                           &encoded) < 0) {
      return SystemError(ENOMEM, "cannot name a unit");
    }
    const std::unique_ptr<char, decltype(&free)> path(encoded, free);
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
    const int status = sd_bus_get_property_string(
        bus_.get(), kManager, path, interface, name, nullptr, &text);
    if (status < 0) {
      return SystemError(-status, fmt::format("systemd: cannot read {}", name));
    }
    const std::unique_ptr<char, decltype(&free)> owner(text, free);
    return std::string(text);
  }
  template <class Int>
  Result<Int> Number(const char* path, const char* name) {
    static_assert(sizeof(Int) == sizeof(int32_t));
    constexpr char kType = std::is_signed_v<Int> ? 'i' : 'u';
    Int value = 0;
    const int status = sd_bus_get_property_trivial(
        bus_.get(), kManager, path, kService, name, nullptr, kType, &value);
    if (status < 0) {
      return SystemError(-status, fmt::format("systemd: cannot read {}", name));
    }
    return value;
  }
  Bus bus_;
};

}  // namespace

Result<std::unique_ptr<UnitManager>> ConnectToSystemd() {
  if (sd_booted() <= 0) {
    return Unsupported("systemd is not running here");
  }
  sd_bus* opened = nullptr;
  const int status = sd_bus_open_system(&opened);
  if (status < 0) {
    return SystemError(-status, "cannot reach systemd by D-Bus");
  }
  Bus bus(opened);
  (void)sd_bus_set_method_call_timeout(opened, kAnswerUs);  // else 25 s
  return std::make_unique<Systemd>(std::move(bus));
}

}  // namespace clew::daemon
