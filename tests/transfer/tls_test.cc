// Goal: over the network, with TLS as in production: a host is known by its
// certificate or its token; each way not to be one is refused with a message
// that says what to do, at once and not after many attempts; and while all that
// goes on, others are served.
// Method: the built clew-collector and certificates made here; after each
// refusal a good upload.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "proto/bundle.pb.h"
#include "proto/collector.grpc.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/certificates.h"
#include "tests/transfer/collector_process.h"
#include "tests/transfer/cutting_proxy.h"
#include "tests/transfer/token_line.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using collector::Files;
using collector::TempFolder;
using test::WaitUntil;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kForClients = "extendedKeyUsage=clientAuth";

Files BundleFiles(const std::string& own) {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  return {{"manifest.pb", manifest.SerializeAsString()},
          {"perf.data", own},
          {"inputs.pb", ""},
          {"core", std::string(kChunkBytes + 5, '\0')},
          {"images/c0ffee/libstdc++.so.6", "image"}};
}

class TlsTest : public testing::Test {
 protected:
  TlsTest()
      : ca_(folder_.path(), "ca"),
        other_ca_(folder_.path(), "other"),
        collector_(
            folder_.path(),
            {"certificate = " + (folder_ / "server.crt"),
             "key = " + (folder_ / "server.key"), "client_ca = " + ca_.cert(),
             "tokens = " + (folder_ / "tokens"), "readers = desk",
             "solvers = 0", "clew = /bin/false", "disk_free_bytes_min = 0",
             "host_bytes_per_day = 64M"}) {
    ca_.Issue("server", "collector",
              "subjectAltName=DNS:localhost,IP:127.0.0.1");
    ca_.Issue("web1", "someone",
              std::string("subjectAltName=DNS:web1\n") + kForClients);
    WriteTokens("desk desk-token\nweb2 web2-token\n");
    WriteToken("web2", "web2-token");
    collector::WriteFiles(folder_ / "bundle", BundleFiles("own"));
  }

  // Lines "host token".
  void WriteTokens(const std::string& lines) {
    std::ofstream file(folder_ / "tokens");
    std::istringstream in(lines);
    for (std::string host, token; in >> host >> token;) {
      file << TokenLine(host, token);
    }
  }
  void WriteToken(const std::string& name, const std::string& token) {
    const std::string path = folder_ / (name + ".token");
    std::ofstream(path) << token << "\n";
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  }

  ClientOptions Anybody() const {
    ClientOptions options;
    options.address = fmt::format("localhost:{}", collector_.port());
    options.ca_file = ca_.cert();
    options.attempts_max = 100;  // a busy machine may break off a handshake
    options.pause_ms_first = 10;
    options.pause_ms_max = 50;
    return options;
  }
  ClientOptions WithCert(const std::string& name) const {
    ClientOptions options = Anybody();
    options.cert_file = folder_ / (name + ".crt");
    options.key_file = folder_ / (name + ".key");
    return options;
  }
  ClientOptions WithToken(const std::string& name) const {
    ClientOptions options = Anybody();
    options.token_file = folder_ / (name + ".token");
    return options;
  }

  Result<BundleId> Upload(const ClientOptions& options,
                          const std::string& bundle = "bundle") {
    CLEW_ASSIGN_OR_RETURN(client, Client::Create(options));
    return client->Upload(folder_ / bundle, nullptr);
  }
  // Why an upload was refused.
  Error Refused(const ClientOptions& options) {
    const auto sent = Upload(options);
    EXPECT_FALSE(sent.has_value()) << "taken";
    return sent ? Error{} : sent.error();
  }
  // A good client is served.
  void ExpectUndisturbed() {
    const std::string name = fmt::format("good{}", good_++);
    collector::WriteFiles(folder_ / name, BundleFiles(name));
    const auto sent = Upload(WithCert("web1"), name);
    EXPECT_TRUE(sent.has_value()) << sent.error().message;
  }

  TempFolder folder_;
  TestAuthority ca_;
  TestAuthority other_ca_;
  CollectorProcess collector_;
  int good_ = 0;
};

TEST_F(TlsTest, CertificatesAndTokensSayWhoItIsAndABundleComesBack) {
  ASSERT_TRUE(collector_.Start());
  const auto sent = Upload(WithCert("web1"));
  ASSERT_TRUE(sent.has_value()) << sent.error().message;
  WriteToken("desk", "desk-token");
  const auto desk = Client::Create(WithToken("desk"));
  ASSERT_TRUE(desk.has_value()) << desk.error().message;
  const auto status = (*desk)->GetStatus();
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(status->host, "desk");
  EXPECT_EQ(status->bundles, 1u);
  const auto list = (*desk)->List({});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->rows.size(), 1u);
  EXPECT_EQ(list->rows[0].host, "web1");
  EXPECT_EQ(list->rows[0].id, *sent);
  const auto got = (*desk)->Get(sent->hex().substr(0, 12), folder_ / "out",
                                PosixFileSystem(), nullptr);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(collector::ReadFiles(folder_ / "out"), BundleFiles("own"));
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
  // The same again: what is there is left alone.
  const auto again =
      (*desk)->Get(sent->hex(), folder_ / "out", PosixFileSystem(), nullptr);
  ASSERT_FALSE(again.has_value());
  EXPECT_THAT(again.error().message, HasSubstr("exists"));
  // And a host that is not a reader does not see it.
  const auto web2 = Client::Create(WithToken("web2"));
  ASSERT_TRUE(web2.has_value());
  EXPECT_EQ((*web2)->List({})->total, 0u);
  EXPECT_EQ(collector_.Stop(), 0);
}

TEST_F(TlsTest, WrongAndMissingTokensAreRefused) {
  ASSERT_TRUE(collector_.Start());
  WriteToken("wrong", "not-a-token-of-ours");
  const Error wrong = Refused(WithToken("wrong"));
  EXPECT_EQ(wrong.code, ErrorCode::kUnsupported);
  EXPECT_THAT(wrong.message, AllOf(HasSubstr("the token is not known here"),
                                   HasSubstr("clew-collector token HOST")));
  const Error nobody = Refused(Anybody());
  EXPECT_EQ(nobody.code, ErrorCode::kUnsupported);
  EXPECT_THAT(nobody.message, HasSubstr("says not whose it is"));
  fs::permissions(folder_ / "web2.token", fs::perms::others_read,
                  fs::perm_options::add);
  EXPECT_THAT(Refused(WithToken("web2")).message,
              HasSubstr("can be read by everybody"));
  ExpectUndisturbed();
  EXPECT_THAT(collector_.log(), HasSubstr("event=refused call=Hello"));
}

TEST_F(TlsTest, TokensAreReadAgainOnSighup) {
  ASSERT_TRUE(collector_.Start());
  ASSERT_TRUE(Upload(WithToken("web2")).has_value());
  WriteTokens("web3 web3-token\n");
  WriteToken("web3", "web3-token");
  EXPECT_FALSE(Upload(WithToken("web3")).has_value());
  collector_.Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Upload(WithToken("web3")).has_value(); }));
  EXPECT_FALSE(Upload(WithToken("web2")).has_value());
  ExpectUndisturbed();
}

TEST_F(TlsTest, ADeniedCertificateIsRefusedFromTheNextCallOn) {
  ca_.Issue("web6", "web6", kForClients);
  std::ofstream(collector_.config_file(), std::ios::app)
      << "denied = " << (folder_ / "denied") << "\n";
  std::ofstream(folder_ / "denied") << "# none yet\n";
  ASSERT_TRUE(collector_.Start());
  ASSERT_TRUE(Upload(WithCert("web6")).has_value());
  // As openssl prints it, behind the "=".
  ASSERT_EQ(std::system(fmt::format("openssl x509 -noout -fingerprint -sha256 "
                                    "-in {} | sed 's/.*=//' >{}",
                                    folder_ / "web6.crt", folder_ / "denied")
                            .c_str()),
            0);
  ASSERT_TRUE(Upload(WithCert("web6")).has_value()) << "not read yet";
  collector_.Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return !Upload(WithCert("web6")).has_value(); }));
  EXPECT_THAT(Refused(WithCert("web6")).message,
              HasSubstr("certificate of host \"web6\" is denied"));
  ExpectUndisturbed();
  // What makes no sense changes nothing.
  std::ofstream(folder_ / "denied") << "web6\n";
  collector_.Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] {
    return collector_.log().find("denied:1: wanted the SHA-256") !=
           std::string::npos;
  }));
  EXPECT_THAT(collector_.log(), HasSubstr("event=reload_failed"));
  EXPECT_THAT(Refused(WithCert("web6")).message, HasSubstr("is denied"));
}

// Denying an authority between denies whom it signed.
TEST_F(TlsTest, ADeniedAuthorityDeniesAllThatItSigned) {
  std::ofstream(collector_.config_file(), std::ios::app)
      << "denied = " << (folder_ / "denied") << "\n";
  ASSERT_EQ(std::system(fmt::format("openssl x509 -outform DER -in {} | "
                                    "sha256sum | cut -d' ' -f1 >{}",
                                    ca_.cert(), folder_ / "denied")
                            .c_str()),
            0);
  ASSERT_TRUE(collector_.Start());
  EXPECT_THAT(Refused(WithCert("web1")).message, HasSubstr("is denied"));
  EXPECT_TRUE(Upload(WithToken("web2")).has_value());
}

TEST_F(TlsTest, AWebPageThatOthersReachIsRefused) {
  for (const std::string web : {"0.0.0.0:0", "[::]:0", "10.0.0.1:0", ":0"}) {
    std::string lines;
    {
      std::ifstream file(collector_.config_file());
      for (std::string line; std::getline(file, line);) {
        lines += (line.starts_with("web =") ? "web = " + web : line) + "\n";
      }
    }
    std::ofstream(collector_.config_file()) << lines;
    EXPECT_FALSE(collector_.Start()) << web;
    EXPECT_THAT(collector_.log(),
                HasSubstr(fmt::format("web is \"{}\": the page has neither "
                                      "login nor TLS",
                                      web)));
  }
}

TEST_F(TlsTest, CertificatesThatDoNotHoldAreRefused) {
  ca_.Issue("expired", "late", kForClients, -10, -2);
  ca_.Issue("early", "soon", kForClients, 1, 5);
  ca_.Issue("wrong_use", "web4", "extendedKeyUsage=serverAuth");
  ca_.Issue("no_name", "a b", kForClients);
  other_ca_.Issue("foreign", "web5", kForClients);
  ASSERT_TRUE(collector_.Start());
  const struct {
    const char* name;
    const char* why;
    const char* what_to_do;
  } cases[] = {
      {"expired", "certificate of host \"late\" expired on", "issue a new one"},
      {"early", "is valid from", "compare the clocks"},
      {"wrong_use", "host \"web4\"", "wanted one for clients"},
      {"no_name", "host \"a b\"", "wanted a DNS name or common name"},
      {"foreign", "host \"web5\"", "signed by the collector's client_ca"},
  };
  for (const auto& [name, why, what_to_do] : cases) {
    const Error error = Refused(WithCert(name));
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << name;
    EXPECT_THAT(error.message, AllOf(HasSubstr(why), HasSubstr(what_to_do)));
  }
  // A certificate that does not hold is refused even with a good token.
  ClientOptions both = WithCert("expired");
  both.token_file = folder_ / "web2.token";
  EXPECT_THAT(Refused(both).message, HasSubstr("expired on"));
  ExpectUndisturbed();
}

TEST_F(TlsTest, ACollectorOfAnotherAuthorityIsNotSpokenTo) {
  ASSERT_TRUE(collector_.Start());
  ClientOptions options = WithCert("web1");
  options.ca_file = other_ca_.cert();
  const Error error = Refused(options);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported) << error.message;
  EXPECT_THAT(error.message, HasSubstr("signed by an authority in 'ca'"));
  ExpectUndisturbed();
}

TEST_F(TlsTest, AnExpiredCertificateOfItsOwnStopsTheCollectorAtStart) {
  ca_.Issue("server", "collector", "subjectAltName=DNS:localhost", -10, -2);
  EXPECT_FALSE(collector_.Start());
  EXPECT_THAT(collector_.log(),
              AllOf(HasSubstr("server.crt"), HasSubstr("expired on"),
                    HasSubstr("issue a new one")));
}

TEST_F(TlsTest, AnotherVersionOfTheProtocolIsRefusedInEveryCall) {
  ASSERT_TRUE(collector_.Start());
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = collector::ReadFiles(folder_.path()).at("ca.crt");
  const auto stub = pb::Collector::NewStub(
      grpc::CreateChannel(fmt::format("localhost:{}", collector_.port()),
                          grpc::SslCredentials(tls)));
  const auto call = [&](const char* version, const auto& ask) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer web2-token");
    if (version != nullptr) {
      context.AddMetadata("clew-protocol", version);
    }
    const grpc::Status status = ask(context);
    pb::Refusal refusal;
    EXPECT_TRUE(refusal.ParseFromString(status.error_details()));
    EXPECT_EQ(refusal.reason(), pb::Refusal::REASON_VERSION)
        << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("install"));
  };
  for (const char* version : {static_cast<const char*>(nullptr), "0", "2"}) {
    call(version, [&](grpc::ClientContext& context) {
      pb::BeginReply reply;
      return stub->Begin(&context, {}, &reply);
    });
    call(version, [&](grpc::ClientContext& context) {
      pb::CommitReply reply;
      return stub->Commit(&context, {}, &reply);
    });
    call(version, [&](grpc::ClientContext& context) {
      pb::ListReply reply;
      return stub->List(&context, {}, &reply);
    });
    call(version, [&](grpc::ClientContext& context) {
      return stub->Put(&context)->Finish();
    });
    call(version, [&](grpc::ClientContext& context) {
      return stub->Get(&context, {})->Finish();
    });
  }
  call(nullptr, [&](grpc::ClientContext& context) {
    pb::HelloRequest request;
    request.set_protocol_min(7);
    request.set_protocol_max(9);
    pb::HelloReply reply;
    return stub->Hello(&context, request, &reply);
  });
  ExpectUndisturbed();
}

TEST_F(TlsTest, AQuotaIsRefusedOverTheNetworkAtOnce) {
  ASSERT_TRUE(collector_.Start());
  // Different in every chunk: equal ones would be sent once.
  std::string bytes;
  bytes.resize(70'000'000);
  for (size_t i = 0; i < bytes.size(); i += 4) {
    bytes[i] = static_cast<char>(i >> 8);
    bytes[i + 1] = static_cast<char>(i >> 16);
    bytes[i + 2] = static_cast<char>(i >> 24);
  }
  collector::WriteFiles(folder_ / "large", BundleFiles(bytes));
  const auto client = Client::Create(WithToken("web2"));
  ASSERT_TRUE(client.has_value());
  UploadStats stats;
  const auto sent = (*client)->Upload(folder_ / "large", nullptr, &stats);
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kLimit);
  EXPECT_THAT(sent.error().message, HasSubstr("host_bytes_per_day"));
  EXPECT_EQ(stats.attempts, 1u) << "a refusal is no reason to try again";
  ExpectUndisturbed();
}

TEST_F(TlsTest, NobodyThereIsSaidAfterSoManyAttempts) {
  ClientOptions options = WithToken("web2");
  options.attempts_max = 3;
  const Error error = Refused(options);
  EXPECT_EQ(error.code, ErrorCode::kSystem);
  EXPECT_THAT(error.message, HasSubstr("gave up after 3 attempts"));
}

TEST_F(TlsTest, CancelEndsAnUploadFromAnotherThread) {
  ClientOptions options = WithToken("web2");
  options.attempts_max = 1'000'000;
  const auto client = Client::Create(options);
  ASSERT_TRUE(client.has_value());
  std::thread canceller([&] {
    // To come in the middle; one that comes before ends the upload as well.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    (*client)->Cancel();
  });
  const auto sent = (*client)->Upload(folder_ / "bundle", nullptr);
  canceller.join();
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().sys_errno, ECANCELED);
  EXPECT_FALSE((*client)->List({}).has_value()) << "every later call, too";
}

TEST_F(TlsTest, AFetchSurvivesCuts) {
  ASSERT_TRUE(collector_.Start());
  std::string bytes;
  bytes.resize(20'000'000);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((i * i) >> 7);
  }
  Files files = BundleFiles(bytes);
  collector::WriteFiles(folder_ / "bundle", files);
  const auto sent = Upload(WithToken("web2"));
  ASSERT_TRUE(sent.has_value()) << sent.error().message;
  CuttingProxy proxy(collector_.port(), 8'000'000, 1);
  ClientOptions options = WithToken("web2");
  options.address = fmt::format("localhost:{}", proxy.port());
  options.attempts_max = 100;
  const auto client = Client::Create(options);
  ASSERT_TRUE(client.has_value());
  const auto got =
      (*client)->Get(sent->hex(), folder_ / "out", PosixFileSystem(), nullptr);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_GT(proxy.cuts(), 0u);
  EXPECT_EQ(collector::ReadFiles(folder_ / "out"), files);
}

}  // namespace
}  // namespace clew::transfer
