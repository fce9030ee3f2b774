// Goal: without rules of its own a host hands on no value of a variable or
// argument whose name says that it is a secret, and keeps the others.
// Method: a bundle with a manifest and a core dump whose stack has each name
// with a value of its own; both files are searched for the values.

#include "daemon/redact/redact.h"

#include <elf.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/procfs.h>

#include <filesystem>

#include "common/os/file.h"
#include "proto/bundle.pb.h"
#include "tests/support/core_maker.h"
#include "tests/support/stack_page.h"

namespace clew::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kStackAt = 0x7000'0000;
const Elf64_auxv_t kAuxv[] = {
    {.a_type = AT_PAGESZ, .a_un = {.a_val = 4096}},
    {.a_type = AT_RANDOM, .a_un = {.a_val = kStackAt + 0x800}},
    {.a_type = AT_NULL, .a_un = {.a_val = 0}}};

class RedactTest : public testing::Test {
 protected:
  RedactTest() {
    std::string pattern = testing::TempDir() + "clew-redact-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RedactTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), folder_ + "/" + name,
                               std::as_bytes(std::span(bytes))));
  }
  std::string Read(const std::string& name) const {
    const auto bytes = ReadWholeFile(folder_ + "/" + name);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()),
                               bytes->size())
                 : "(cannot be read)";
  }
  void MakeBundle(const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment) const {
    pb::Manifest manifest;
    for (const std::string& word : arguments) {
      manifest.add_command(word);
    }
    Write("manifest.pb", manifest.SerializeAsString());
    CoreMaker core(4096);
    core.AddNote(NT_PRSTATUS, BytesOf(elf_prstatus{}));
    core.AddNote(NT_AUXV, BytesOf(kAuxv));
    core.AddMemory(kStackAt, PF_R | PF_W,
                   StackPage(kStackAt, arguments, environment, kAuxv));
    Write("core", core.File());
  }

  std::string folder_;
};

TEST_F(RedactTest, TheBuiltInRulesTakeOutUsualSecrets) {
  const std::vector<std::string> secret_arguments = {
      "--password=S01", "--db-password=S02", "--api_key=S03",
      "--ApiKey=S04",   "--secret:S05",      "password=S06",
      "-Ddb.pass=S07",  "--env=DB_PASS=S08", "Authorization: Bearer S09"};
  const std::vector<std::string> options = {"--token", "-pass", "--auth-token",
                                            "--passphrase", "--cookie"};
  std::vector<std::string> arguments = {"prog", "--port=K01", "K02"};
  arguments.insert(arguments.end(), secret_arguments.begin(),
                   secret_arguments.end());
  for (size_t i = 0; i < options.size(); ++i) {
    arguments.push_back(options[i]);
    arguments.push_back(fmt::format("T{:02}", i));
  }
  arguments.emplace_back("--token-file");
  arguments.emplace_back("K03");
  const std::vector<std::string> names = {
      "DB_PASS",      "SMTP_PASS",       "MYSQL_PWD",  "DATABASE_URL",
      "DSN",          "APIKEY",          "api_key",    "Api_Key",
      "AUTH",         "X_COOKIE",        "PASSPHRASE", "TLS_PEM",
      "GITHUB_TOKEN", "SECRET_KEY_BASE", "REDIS_URL",  "AWS_ACCESS_KEY_ID"};
  std::vector<std::string> environment = {"PWD=K04", "OLDPWD=K05", "PATH=K06",
                                          "SSH_AUTH_SOCK=K07", "HOME=K08"};
  for (size_t i = 0; i < names.size(); ++i) {
    environment.push_back(fmt::format("{}=E{:02}", names[i], i));
  }
  MakeBundle(arguments, environment);
  const Status done = RedactBundle(folder_, "");
  ASSERT_TRUE(done) << done.error().message;
  for (const char* file : {"manifest.pb", "core"}) {
    const std::string bytes = Read(file);
    for (size_t i = 1; i <= secret_arguments.size(); ++i) {
      EXPECT_THAT(bytes, Not(HasSubstr(fmt::format("S{:02}", i)))) << file;
    }
    for (size_t i = 0; i < options.size(); ++i) {
      EXPECT_THAT(bytes, Not(HasSubstr(fmt::format("T{:02}", i)))) << file;
    }
    for (const char* kept : {"--port=K01", "K02", "--password=", "K03"}) {
      EXPECT_THAT(bytes, HasSubstr(kept)) << file;
    }
  }
  const std::string core = Read("core");
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_THAT(core, Not(HasSubstr(fmt::format("=E{:02}", i)))) << names[i];
  }
  for (int i = 4; i <= 8; ++i) {
    EXPECT_THAT(core, HasSubstr(fmt::format("=K{:02}", i)));
  }
}

}  // namespace
}  // namespace clew::daemon
