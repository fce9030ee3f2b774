// Goal: clew upload, list and get do what their help says: where the collector
// is comes from option, environment or file; exit codes tell causes apart;
// --json is one document; clew-collector checks, removes and makes tokens.
// Method: the built programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/run_program.h"
#include "proto/bundle.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/collector_process.h"

namespace clew::transfer {
namespace {

using cli::ProgramOutput;
using collector::Files;
using testing::HasSubstr;
using Json = nlohmann::json;

class CliTest : public testing::Test {
 protected:
  CliTest()
      : collector_(folder_.path(),
                   {"insecure_loopback = yes", "solvers = 0",
                    "clew = /bin/false", "disk_free_bytes_min = 0"}) {
    pb::Manifest manifest;
    manifest.set_format_version(1);
    manifest.add_command("./server");
    files_ = {{"manifest.pb", manifest.SerializeAsString()},
              {"perf.data", "trace"},
              {"inputs.pb", ""}};
    collector::WriteFiles(folder_ / "b.clew", files_);
    std::ofstream(folder_ / "client.conf")
        << "collector = " << collector_.address()
        << "\ninsecure_loopback = yes\n";
  }

  // By a shell, in the test's folder, both outputs in one.
  ProgramOutput Shell(const std::string& line) const {
    return cli::RunProgram(
               {"sh", "-c", "cd " + folder_.path() + " && (" + line + ") 2>&1"})
        .value_or(ProgramOutput{.exit_status = -1, .text = ""});
  }
  ProgramOutput Clew(const std::string& line) const {
    return Shell(std::string(std::getenv("CLEW_BINARY_DIR")) + "/bin/clew " +
                 line);
  }
  ProgramOutput Configured(const std::string& line) const {
    return Clew(line + " --client-config client.conf");
  }
  ProgramOutput Collector(const std::string& line) const {
    return Shell(CollectorBinary() + " --config " + collector_.config_file() +
                 " " + line);
  }

  collector::TempFolder folder_;
  CollectorProcess collector_;
  Files files_;
};

TEST_F(CliTest, ABundleGoesThereAndComesBack) {
  ASSERT_TRUE(collector_.Start());
  const ProgramOutput sent = Configured("upload --json b.clew");
  ASSERT_EQ(sent.exit_status, 0) << sent.text;
  const Json upload = Json::parse(sent.text, nullptr, false);
  ASSERT_FALSE(upload.is_discarded()) << sent.text;
  const std::string id = upload["bundle"];
  EXPECT_EQ(id.size(), 64u);
  EXPECT_EQ(upload["bytes_sent"], upload["bytes"]);
  EXPECT_THAT(Configured("upload b.clew").text, HasSubstr("0sent"));

  const ProgramOutput listed = Configured("list --json");
  ASSERT_EQ(listed.exit_status, 0) << listed.text;
  const Json list = Json::parse(listed.text, nullptr, false);
  ASSERT_FALSE(list.is_discarded()) << listed.text;
  EXPECT_EQ(list["total"], 1);
  EXPECT_EQ(list["bundles"][0]["id"], id);
  EXPECT_EQ(list["bundles"][0]["command"], "./server");
  EXPECT_THAT(Configured("list").text, HasSubstr(id.substr(0, 12)));
  EXPECT_THAT(Configured("list --host other").text, HasSubstr("0 of 0"));

  const ProgramOutput got = Configured("get " + id.substr(0, 8) + " -o c.clew");
  ASSERT_EQ(got.exit_status, 0) << got.text;
  EXPECT_EQ(collector::ReadFiles(folder_ / "c.clew"), files_);
  EXPECT_EQ(Configured("get " + id.substr(0, 8) + " -o c.clew").exit_status, 2);
}

// The first collector knows no engineers, the second one everybody on its host.
TEST_F(CliTest, AnEngineerChecksAndDeletes) {
  ASSERT_TRUE(collector_.Start());
  const ProgramOutput sent = Configured("upload --json b.clew");
  const std::string id = Json::parse(sent.text, nullptr, false)["bundle"];
  const ProgramOutput refused = Configured("delete " + id);
  EXPECT_EQ(refused.exit_status, 3);
  EXPECT_THAT(refused.text, HasSubstr("'engineers'"));
  collector_.Stop();
  std::ofstream(collector_.config_file(), std::ios::app)
      << "engineers = localhost\n";
  ASSERT_TRUE(collector_.Start());
  const ProgramOutput whole = Configured("scrub " + id.substr(0, 8));
  EXPECT_EQ(whole.exit_status, 0) << whole.text;
  EXPECT_THAT(whole.text, HasSubstr("0 faults"));
  EXPECT_EQ(Configured("delete " + id.substr(0, 8)).exit_status, 0);
  EXPECT_EQ(Configured("delete " + id.substr(0, 8)).exit_status, 2);
  EXPECT_THAT(Configured("list").text, HasSubstr("0 of 0 bundles"));
}

// Without a backtrace the bundle's group is that of its failure's kind.
TEST_F(CliTest, AnEngineerResolvesAndReopensAGroup) {
  ASSERT_TRUE(collector_.Start());
  ASSERT_EQ(Configured("upload b.clew").exit_status, 0);
  std::string id;
  ASSERT_TRUE(test::WaitUntil([&] {
    const ProgramOutput listed = Configured("group list --json");
    EXPECT_EQ(listed.exit_status, 0) << listed.text;
    if (listed.exit_status != 0) {
      return true;
    }
    const Json list = Json::parse(listed.text, nullptr, false);
    id = list["total"] == 1 ? list["groups"][0]["signature"] : "";
    return !id.empty();
  })) << collector_.log();
  ASSERT_EQ(id.size(), 64u);
  const std::string some = id.substr(0, 12);
  EXPECT_THAT(Configured("group list --open").text, HasSubstr(some));
  EXPECT_THAT(Configured("group list --program other").text,
              HasSubstr("0 of 0 groups"));
  const ProgramOutput refused = Configured("group resolve " + some);
  EXPECT_EQ(refused.exit_status, 3);
  EXPECT_THAT(refused.text, HasSubstr("'engineers'"));
  collector_.Stop();
  std::ofstream(collector_.config_file(), std::ios::app)
      << "engineers = localhost\n";
  ASSERT_TRUE(collector_.Start());
  EXPECT_EQ(Configured("group resolve 0123456789").exit_status, 2);
  EXPECT_EQ(Configured("group note " + some + " '\x1b[2J'").exit_status, 2);
  EXPECT_EQ(Configured("group frobnicate").exit_status, 2);
  for (int i = 0; i < 2; ++i) {
    const ProgramOutput resolved =
        Configured("group resolve " + some + " --in 1.4.2");
    EXPECT_EQ(resolved.exit_status, 0) << resolved.text;
    EXPECT_THAT(resolved.text, HasSubstr("resolved in version 1.4.2"));
  }
  EXPECT_THAT(Configured("group note " + some + " 'see #12'").text,
              HasSubstr("see #12"));
  EXPECT_THAT(Configured("group list --open").text, HasSubstr("0 of 0 groups"));
  const ProgramOutput reopened =
      Configured("group reopen " + some + " --note ''");
  EXPECT_EQ(reopened.exit_status, 0) << reopened.text;
  const ProgramOutput shown = Configured("group show " + some + " --json");
  const Json group = Json::parse(shown.text, nullptr, false);
  EXPECT_EQ(group["resolved"], false) << shown.text;
  EXPECT_EQ(group["note"], "");
  EXPECT_EQ(group["changed_by"], "localhost");
  EXPECT_THAT(Configured("group show " + some).text, HasSubstr(id));
}

TEST_F(CliTest, TheOptionComesBeforeTheEnvironmentAndThatBeforeTheFile) {
  ASSERT_TRUE(collector_.Start());
  const std::string address = collector_.address();
  std::ofstream(folder_ / "client.conf")
      << "collector = 127.0.0.1:1\ninsecure_loopback = yes\n";
  const std::string list = "/bin/clew list --client-config client.conf ";
  const std::string clew = std::getenv("CLEW_BINARY_DIR") + list;
  EXPECT_EQ(Shell("CLEW_COLLECTOR=" + address + " " + clew).exit_status, 0);
  EXPECT_EQ(
      Shell("CLEW_COLLECTOR=127.0.0.1:1 " + clew + " --collector " + address)
          .exit_status,
      0);
}

TEST_F(CliTest, ExitCodesTellCausesApart) {
  ASSERT_TRUE(collector_.Start());
  const ProgramOutput nowhere = Clew("list --client-config absent.conf");
  EXPECT_EQ(nowhere.exit_status, 2);
  EXPECT_THAT(nowhere.text, HasSubstr("which collector?"));
  const ProgramOutput remote =
      Clew("list --insecure-loopback --collector example.com:7790");
  EXPECT_EQ(remote.exit_status, 2);
  EXPECT_THAT(remote.text, HasSubstr("without TLS only 127.0.0.1"));
  EXPECT_EQ(Configured("upload absent.clew").exit_status, 3);
  EXPECT_EQ(Configured("get 12345678").exit_status, 2);
  collector::WriteFiles(folder_ / "bad.clew",
                        {{"manifest.pb", "\xff"}, {"perf.data", "x"}});
  EXPECT_EQ(Configured("upload bad.clew").exit_status, 4);
  std::ofstream(folder_ / "client.conf") << "colector = x:1\n";
  const ProgramOutput typo = Configured("list");
  EXPECT_EQ(typo.exit_status, 2);
  EXPECT_THAT(typo.text, HasSubstr("client.conf:1: \"colector\" is no key"));
}

TEST_F(CliTest, TheStoreIsCheckedAndBundlesRemovedWhileTheCollectorIsDown) {
  ASSERT_TRUE(collector_.Start());
  const ProgramOutput sent = Configured("upload --json b.clew");
  const Json upload = Json::parse(sent.text, nullptr, false);
  ASSERT_FALSE(upload.is_discarded()) << sent.text;
  const std::string id = upload["bundle"];
  const ProgramOutput refused = Collector("check");
  EXPECT_EQ(refused.exit_status, 3) << "it runs";
  EXPECT_THAT(refused.text, HasSubstr("open in another collector"));
  ASSERT_EQ(collector_.Stop(), 0);
  const ProgramOutput check = Collector("check");
  EXPECT_EQ(check.exit_status, 0) << check.text;
  EXPECT_THAT(check.text, HasSubstr("1 bundles"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           collector_.data() + "/chunks")) {
    if (entry.is_regular_file() &&
        entry.file_size() == files_["perf.data"].size()) {
      std::ofstream(entry.path()) << "TRACE";
    }
  }
  EXPECT_EQ(Collector("check").exit_status, 4) << "a byte is wrong";
  EXPECT_EQ(Collector("remove " + id).exit_status, 0);
  EXPECT_THAT(Collector("check").text, HasSubstr("0 bundles"));
  EXPECT_EQ(Collector("remove " + id).exit_status, 2);
}

TEST_F(CliTest, ATokenMadeHereIsTaken) {
  const ProgramOutput made =
      Shell(CollectorBinary() + " token web1 >tokens 2>told");
  ASSERT_EQ(made.exit_status, 0);
  ASSERT_EQ(
      Shell("tail -n 1 told >web1.token && chmod 600 web1.token").exit_status,
      0);
  std::ofstream(collector_.config_file(), std::ios::app)
      << "tokens = " << (folder_ / "tokens") << "\n";
  ASSERT_TRUE(collector_.Start());
  EXPECT_EQ(Configured("list").exit_status, 3) << "nobody";
  std::ofstream(folder_ / "client.conf", std::ios::app)
      << "token_file = web1.token\n";
  const ProgramOutput list = Configured("list");
  EXPECT_EQ(list.exit_status, 0) << list.text;
}

TEST_F(CliTest, AConfigurationThatIsWrongIsNamedByFileAndLine) {
  std::ofstream(collector_.config_file(), std::ios::app) << "prot = 1\n";
  const ProgramOutput output = Collector("");
  EXPECT_EQ(output.exit_status, 2);
  EXPECT_THAT(output.text, HasSubstr("collector.conf:8: \"prot\" is no key"));
}

}  // namespace
}  // namespace clew::transfer
