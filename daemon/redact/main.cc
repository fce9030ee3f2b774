// clewd-redact: what of a bundle may not leave the host is taken out. clewd
// starts it, confined, for each bundle; see docs/design/daemon.md.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "daemon/redact/redact.h"

namespace {

constexpr const char* kUsage = R"(usage: clewd-redact BUNDLE [RULES]

Takes out of BUNDLE what the file RULES says, "-": standard input, else the
built-in rules. Try rules on a copy.
)";

}  // namespace

int main(int argc, char** argv) {
  const bool help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
  if (help || argc < 2 || argc > 3) {
    fmt::print(help ? stdout : stderr, "{}", kUsage);
    return help ? clew::kExitOk : clew::kExitUsage;
  }
  const clew::Status done =
      clew::daemon::RedactBundle(argv[1], argc == 3 ? argv[2] : "");
  if (!done) {
    fmt::print(stderr, "clewd-redact: {}\n", done.error().message);
    return clew::ExitCodeOf(done.error().code);
  }
  return clew::kExitOk;
}
