// Goal: only a client with a token or a certificate of ours is identified, and
// one that is refused learns why; a log that repeats is short.
// Method: pairs of input and outcome. Certificates are in
// tests/transfer/tls_test.cc.

#include "collector/service/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

using testing::HasSubstr;

// Of a call with TLS, but without certificate and token.
const Credentials kNothing{.encrypted = true,
                           .chain_pem_untrusted = "",
                           .authorization_untrusted = std::nullopt};

std::string WhyNot(const Status& status) {
  return status ? "" : status.error().message;
}

TEST(TokensTest, ATokenIsKnownByItsDigest) {
  const auto web1 = MakeToken("web1");
  const auto web2 = MakeToken("web2");
  ASSERT_TRUE(web1.has_value() && web2.has_value());
  EXPECT_NE(web1->token, web2->token);
  EXPECT_EQ(web1->line.find(web1->token), std::string::npos);
  const auto tokens = Tokens::Parse(
      "# hosts\n\n" + web1->line + " # the first\n" + web2->line, "tokens");
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  EXPECT_EQ(tokens->size(), 2u);
  EXPECT_EQ(tokens->HostOf(web1->token), "web1");
  EXPECT_EQ(tokens->HostOf(web2->token), "web2");
  EXPECT_EQ(tokens->HostOf(web1->token + "x"), std::nullopt);
  EXPECT_EQ(tokens->HostOf(""), std::nullopt);
  // The digest, which a thief of the file has, is not a token.
  EXPECT_EQ(tokens->HostOf(web1->line.substr(5)), std::nullopt);
}

TEST(TokensTest, MalformedLinesAreNamed) {
  for (const char* line : {"web1", "web1 abcd", "web1 x y", "w/eb1 0"}) {
    const auto tokens = Tokens::Parse(std::string("\n") + line, "tokens");
    ASSERT_FALSE(tokens.has_value()) << line;
    EXPECT_THAT(tokens.error().message, HasSubstr("tokens:2: wanted"));
  }
  EXPECT_FALSE(MakeToken("a host").has_value());
}

TEST(AuthenticatorTest, TokensAreReadAgainAndABrokenFileChangesNothing) {
  const TempFolder folder;
  const std::string file = folder / "tokens";
  const auto web1 = MakeToken("web1");
  const auto web2 = MakeToken("web2");
  ASSERT_TRUE(web1.has_value() && web2.has_value());
  std::ofstream(file) << web1->line << "\n";
  const auto made = Authenticator::Create(
      {.client_ca_file = "", .tokens_file = file, .readers = {"web2"}});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const auto identify = [&](const std::string& token) {
    return (*made)->Identify({.encrypted = true,
                              .chain_pem_untrusted = "",
                              .authorization_untrusted = "Bearer " + token});
  };
  ASSERT_TRUE(identify(web1->token).has_value());
  EXPECT_EQ(identify(web1->token)->host, "web1");
  EXPECT_FALSE(identify(web1->token)->reads_all);
  const auto unknown = identify(web2->token);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, HasSubstr("clew-collector token"));

  std::ofstream(file) << web2->line << "\n";
  ASSERT_TRUE((*made)->Reload());
  EXPECT_FALSE(identify(web1->token).has_value());
  ASSERT_TRUE(identify(web2->token).has_value());
  EXPECT_TRUE(identify(web2->token)->reads_all);

  std::ofstream(file) << "nonsense\n";
  EXPECT_THAT(WhyNot((*made)->Reload()), HasSubstr("tokens:1: wanted"));
  EXPECT_TRUE(identify(web2->token).has_value());
}

// A reader is not an engineer, and "*" matches none.
TEST(AuthenticatorTest, EngineersAreNamedOneByOne) {
  const TempFolder folder;
  const std::string file = folder / "tokens";
  const auto reader = MakeToken("reader");
  const auto ann = MakeToken("ann");
  ASSERT_TRUE(reader.has_value() && ann.has_value());
  std::ofstream(file) << reader->line << "\n" << ann->line << "\n";
  for (const bool all : {false, true}) {
    Authenticator::Options options{.client_ca_file = "",
                                   .tokens_file = file,
                                   .readers = {"reader"},
                                   .engineers = {"ann"}};
    if (all) {
      options.readers = {"*"};
      options.engineers.insert("*");
    }
    const auto made = Authenticator::Create(options);
    ASSERT_TRUE(made.has_value());
    const auto identify = [&](const std::string& token) {
      return *(*made)->Identify({.encrypted = true,
                                 .chain_pem_untrusted = "",
                                 .authorization_untrusted = "Bearer " + token});
    };
    EXPECT_TRUE(identify(ann->token).engineer);
    EXPECT_TRUE(identify(ann->token).reads_all) << "sees what it may delete";
    EXPECT_FALSE(identify(reader->token).engineer);
    EXPECT_TRUE(identify(reader->token).reads_all);
  }
}

TEST(AuthenticatorTest, WhoSaysNothingIsToldWhatIsWanted) {
  const TempFolder folder;
  std::ofstream(folder / "tokens").flush();
  const auto made = Authenticator::Create(
      {.client_ca_file = "", .tokens_file = folder / "tokens", .readers = {}});
  ASSERT_TRUE(made.has_value());
  const auto nobody = (*made)->Identify(kNothing);
  ASSERT_FALSE(nobody.has_value());
  EXPECT_THAT(nobody.error().message, HasSubstr("a token (token_file)"));
  const auto without = Authenticator::Create({});
  ASSERT_FALSE(without.has_value());
  EXPECT_THAT(without.error().message, HasSubstr("give client_ca"));
}

TEST(AuthenticatorTest, LoopbackIsTrustedOnlyWithoutTokensAndTls) {
  Authenticator::Options trusting;
  trusting.trust_loopback = true;
  const auto made = Authenticator::Create(trusting);
  ASSERT_TRUE(made.has_value());
  ASSERT_TRUE((*made)->Identify({}).has_value());
  EXPECT_EQ((*made)->Identify({})->host, "localhost");
  EXPECT_FALSE((*made)->Identify(kNothing).has_value());
}

}  // namespace
}  // namespace clew::collector
