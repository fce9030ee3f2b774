// Goal: what the pages say can be read in a browser: a group's row, a
// backtrace and the command line are text that is seen, and the page is drawn.
// Method: headless Chromium against a real server. Skipped where there is no
// Chromium. CLEW_WEB_SCREENSHOTS=<folder> keeps pictures of all pages, wide and
// narrow, light and dark, for people to look at.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/collector/web/html_tokens.h"
#include "tests/collector/web/served_site.h"

namespace clew::collector::web {
namespace {

using testing::HasSubstr;

struct Output {
  int exit_code;
  std::string text;
};

Output RunShell(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "re"),
                                                   [](FILE*) { return 0; });
  Output output{-1, {}};
  std::array<char, 4096> buffer;
  size_t count = 0;
  while ((count = fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0) {
    output.text.append(buffer.data(), count);
  }
  const int status = pclose(pipe.get());
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

class BrowserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RunShell("command -v chromium").exit_code != 0) {
      GTEST_SKIP() << "no chromium: apt install chromium";
    }
  }

  // Chromium keeps its profile in a folder of the test's own. The limit is for
  // one that hangs.
  Output Chromium(const std::string& arguments) {
    return RunShell(
        "timeout 300 chromium --headless --no-sandbox --disable-gpu "
        "--disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-extensions "
        "--hide-scrollbars --user-data-dir=" +
        (profile_ / "chromium") + " " + arguments + " 2>" +
        (profile_ / "stderr"));
  }

  // What a reader sees of the page; scripts are off in the page's own policy.
  std::string TextOf(const std::string& url) {
    const Output output = Chromium("--dump-dom '" + url + "'");
    EXPECT_EQ(output.exit_code, 0);
    return TextOfHtml(output.text);
  }

  size_t Screenshot(const std::string& url, const std::string& file,
                    const std::string& options) {
    const Output output =
        Chromium(options + " --screenshot=" + file + " '" + url + "'");
    EXPECT_EQ(output.exit_code, 0);
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file, error);
    return error ? 0 : bytes;
  }

  TempFolder profile_;
};

TEST_F(BrowserTest, TheGroupsPageShowsTheGroup) {
  ServedSite site(FillWithOne);
  const std::string text = TextOf(site.Url("/"));
  EXPECT_THAT(text, HasSubstr("SIGABRT in main (assertion of balance)"));
  EXPECT_THAT(text, HasSubstr("web-00.example"));
  EXPECT_THAT(text, HasSubstr("witness"));
  EXPECT_THAT(text, HasSubstr("9 min ago"));
}

TEST_F(BrowserTest, TheBundlePageShowsBacktraceAndCommands) {
  ServedSite site;
  const std::string id = site.AddStored().hex();
  const std::string text = TextOf(site.Url("/bundles/" + id));
  EXPECT_THAT(text, HasSubstr("bank.c:62"));
  EXPECT_THAT(text, HasSubstr("__libc_start_call_main"));
  EXPECT_THAT(text, HasSubstr("clew get --collector collector.example:7447 " +
                              id + " -o " + id.substr(0, 12) + ".clew"));
  EXPECT_THAT(text,
              HasSubstr("clew replay --check 5 " + id.substr(0, 12) + ".clew"));
}

// A page that is blank, or that was not drawn, is a much smaller picture.
TEST_F(BrowserTest, ThePageIsDrawn) {
  ServedSite site(FillWithOne);
  const size_t blank = Screenshot("about:blank", profile_ / "blank.png", "");
  const size_t page = Screenshot(site.Url("/"), profile_ / "page.png",
                                 "--window-size=1280,900");
  EXPECT_GT(blank, 0u);
  EXPECT_GT(page, 2 * blank);
}

TEST_F(BrowserTest, PicturesForPeople) {
  const char* folder = std::getenv("CLEW_WEB_SCREENSHOTS");
  if (folder == nullptr) {
    GTEST_SKIP() << "CLEW_WEB_SCREENSHOTS is not set";
  }
  ServedSite one;
  const std::string id = one.AddStored().hex();
  ServedSite empty;
  ServedSite hostile(FillWithHostileNames);
  ServedSite fleet(FillWithFleet);
  fleet.AddReports(60);
  struct Shot {
    std::string name, url;
  };
  const std::vector<Shot> shots = {
      {"one", one.Url("/")},
      {"bundle", one.Url("/bundles/" + id)},
      {"empty", empty.Url("/")},
      {"hostile", hostile.Url("/")},
      {"hostile-bundle", hostile.Url("/bundles/" + SampleId(10).hex())},
      {"fleet", fleet.Url("/")},
      {"filtered", fleet.Url("/?program=bank&last=7d&state=unsolved")},
      {"no-match", fleet.Url("/?q=nothing&program=other&unit=x.service")},
      {"group", fleet.Url("/groups/" + SampleSignature(0))},
      {"race", fleet.Url("/bundles/" + SampleId(0).hex())},
      {"bundles", fleet.Url("/bundles?state=unsolved")},
      {"hosts", fleet.Url("/hosts")},
      {"missing", fleet.Url("/nowhere")}};
  const char* only = std::getenv("CLEW_WEB_SCREENSHOTS_ONLY");
  for (const Shot& shot : shots) {
    if (only != nullptr && shot.name != only) {
      continue;
    }
    const std::string base = std::string(folder) + "/" + shot.name;
    EXPECT_GT(
        Screenshot(shot.url, base + "-wide.png", "--window-size=1280,900"), 0u);
    EXPECT_GT(Screenshot(shot.url, base + "-wide-dark.png",
                         "--window-size=1280,900 "
                         "--blink-settings=preferredColorScheme=0"),
              0u);
    EXPECT_GT(
        Screenshot(shot.url, base + "-narrow.png", "--window-size=375,1400"),
        0u);
    EXPECT_GT(Screenshot(shot.url, base + "-narrow-dark.png",
                         "--window-size=375,1400 "
                         "--blink-settings=preferredColorScheme=0"),
              0u);
  }
}

}  // namespace
}  // namespace clew::collector::web
