// clewd: see docs/design/daemon.md. What a host's failures leave behind becomes
// bundles in the collector.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/exec_arguments.h"
#include "common/os/own_file.h"
#include "common/text/parse_number.h"
#include "daemon/config/rules.h"
#include "daemon/daemon.h"
#include "daemon/loop/notify.h"
#include "daemon/source/inspect.h"
#include "daemon/source/inspector.h"
#include "daemon/source/perf_source.h"
#include "daemon/source/try_sources.h"
#include "daemon/spool/takeover.h"

namespace clew::daemon {
namespace {

constexpr const char* kUsage =
    R"(usage: clewd [--root DIR] [--own-look S] [--host-look S]
       clewd --check-config FILE
       clewd --try-sources
       clewd redact BUNDLE [RULES]
       clewd renew BUNDLE UID GID
       clewd inspect
       clewd --version

Saves failures of this host's services as bundles and sends them to a
clew-collector. Configuration: /etc/clew/clewd.conf. Control: clew daemon,
clew snapshot. For tests: --root puts all of its files below another folder;
--own-look and --host-look are the seconds that a look at the process of a
bundle, and at all others, may take on a slow machine.
--try-sources opens each source once, as the daemon would, and says why not.
)";

int Fail(const Error& error) {
  fmt::print(stderr, "clewd: {}\n", error.message);
  return ExitCodeOf(error.code);
}

int ExitOf(const Status& status) {
  return status ? kExitOk : Fail(status.error());
}

class Signals {
 public:
  // Blocked here, so that threads made later block them, too.
  static Result<Signals> Block() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      sigaddset(&set, signal);
    }
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
      return SystemError(errno, "cannot block signals");
    }
    Signals signals;
    signals.fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (signals.fd_.get() < 0) {
      return SystemError(errno, "cannot make a signalfd");
    }
    return signals;
  }
  Status Watch(Loop& loop, Daemon& daemon) {
    return loop.Watch(fd_.get(), EPOLLIN, [this, &daemon](uint32_t) {
      signalfd_siginfo info = {};
      while (read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGHUP) {
          Reload(daemon);
        } else {
          daemon.Stop();
        }
      }
    });
  }

 private:
  static void Reload(Daemon& daemon) {
    Notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                       SystemClock().MonotonicNs() / 1000));
    (void)daemon.Reload();  // noted and logged there
    Notify("READY=1");
  }
  Fd fd_;
};

// The watchdog is fed from the event loop only, so a hung loop is noticed.
void FeedWatchdog(Loop& loop, uint64_t period_ms) {
  Notify("WATCHDOG=1");
  loop.After(period_ms, [&loop, period_ms] { FeedWatchdog(loop, period_ms); });
}

struct ServeOptions {
  std::string root = "/";
  LookTimes looks;
};

// nullopt: it is something else that is wanted.
std::optional<ServeOptions> ParseServe(const std::vector<std::string>& words) {
  ServeOptions options;
  if (words.size() % 2 != 0) {
    return std::nullopt;
  }
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    const auto seconds = ParseNumber<uint16_t>(value);
    if (words[i] == "--root" && value.starts_with('/')) {
      options.root = value;
    } else if (words[i] == "--own-look" && seconds) {
      options.looks.own = std::chrono::seconds(*seconds);
      options.looks.image = options.looks.own;
    } else if (words[i] == "--host-look" && seconds) {
      options.looks.host = std::chrono::seconds(*seconds);
      options.looks.host_user = options.looks.host;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

OpenSource SourceOpener(const LookTimes& looks) {
  return
      [looks](const Config& config) { return OpenPerfSource(config, looks); };
}

Status Serve(const ServeOptions& options) {
  CLEW_ASSIGN_OR_RETURN(signals, Signals::Block());
  umask(0077);
  CLEW_ASSIGN_OR_RETURN(loop, Loop::Make(SystemClock()));
  Log log(STDERR_FILENO, ErrorsGoToJournald());
  const Paths paths(options.root);
  CLEW_ASSIGN_OR_RETURN(config, ReadCheckedConfig(paths.config));
  std::unique_ptr<UnitManager> systemd;
  if (sd_booted() > 0) {
    systemd = SystemdByDbus();
  } else {
    log.Write(Priority::kInfo, "no-systemd", {});
  }
  CLEW_ASSIGN_OR_RETURN(
      daemon, Daemon::Start({.loop = *loop,
                             .clock = SystemClock(),
                             .log = log,
                             .paths = paths,
                             .clewd = OwnProgram(),
                             .open_source = SourceOpener(options.looks),
                             .units = systemd.get()},
                            config));
  CLEW_RETURN_IF_ERROR(signals.Watch(*loop, *daemon));
  Notify("READY=1");
  log.Write(Priority::kInfo, "started", {{"version", CLEW_VERSION}});
  if (const uint64_t period_ms = WatchdogPeriodMs(); period_ms > 0) {
    FeedWatchdog(*loop, period_ms);
  }
  CLEW_RETURN_IF_ERROR(loop->Run());
  log.Write(Priority::kInfo, "stopped", {});
  return {};
}

// For the daemon: a bundle becomes files that nobody else has open.
int RenewAs(const std::string& bundle, const std::string& user,
            const std::string& group) {
  const auto uid = ParseNumber<uid_t>(user);
  const auto gid = ParseNumber<gid_t>(group);
  if (!uid || !gid) {
    fmt::print(stderr, "{}", kUsage);
    return kExitUsage;
  }
  return ExitOf(Renew(bundle, {*uid, *gid}));
}

// For who tries rules: the program that this one starts for each bundle.
int Redact(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  words[0] = RedactProgram(OwnProgram());
  const std::vector<char*> pointers = ExecArguments(words);
  execv(pointers[0], pointers.data());
  return Fail(
      SystemError(errno, fmt::format("cannot start {}", words[0])).error());
}

int PrintSources() {
  const auto config = ReadCheckedConfig(Paths("/").config);
  if (!config) {
    return Fail(config.error());
  }
  fmt::print("{}", TrySources(SourceOpener(LookTimes()), *config));
  return kExitOk;
}

int CheckConfig(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return Fail(SystemError(errno, path).error());
  }
  const auto config = ReadCheckedConfig(path);
  if (!config) {
    return Fail(config.error());
  }
  for (const std::string& warning : config->warnings) {
    fmt::print(stderr, "clewd: warning: {}\n", warning);
  }
  return kExitOk;
}

int Main(const std::vector<std::string>& arguments) {
  const size_t count = arguments.size();
  const std::string first = count > 0 ? arguments[0] : "";
  if (const auto options = ParseServe(arguments)) {
    return ExitOf(Serve(*options));
  }
  if (first == "--check-config" && count == 2) {
    return CheckConfig(arguments[1]);
  }
  if (first == "--try-sources" && count == 1) {
    return PrintSources();
  }
  if (first == "redact" && (count == 2 || count == 3)) {
    return Redact(arguments);
  }
  if (first == "renew" && count == 4) {
    return RenewAs(arguments[1], arguments[2], arguments[3]);
  }
  if (first == "inspect" && count == 1) {
    return ExitOf(Inspect());
  }
  if (first == "--version" && count == 1) {
    fmt::print("clewd {}\n", CLEW_VERSION);
    return kExitOk;
  }
  fmt::print(stderr, "{}", kUsage);
  return first == "--help" ? kExitOk : kExitUsage;
}

}  // namespace
}  // namespace clew::daemon

int main(int argc, char** argv) {
  return clew::daemon::Main({argv + 1, argv + argc});
}
