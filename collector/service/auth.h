#ifndef CLEW_COLLECTOR_SERVICE_AUTH_H_
#define CLEW_COLLECTOR_SERVICE_AUTH_H_

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/service/service.h"
#include "common/result.h"
#include "transfer/certificate.h"
#include "transfer/sha256.h"

namespace clew::collector {

// What a call brings to say who it is.
struct Credentials {
  bool encrypted = false;
  std::string chain_pem_untrusted;  // client's certificate first; empty: none
  std::optional<std::string> authorization_untrusted;  // of the metadata
};

// The tokens file, one line a token, "#" begins a comment:
//
//     <host> <SHA-256 of the token in hexadecimal>
//
// A host may have several. The tokens themselves are nowhere on the collector.
class Tokens {
 public:
  static constexpr size_t kTokensMax = 65536;
  // Fails with kInvalidArgument, with file and line, if a line is not of this
  // form or there are more than kTokensMax.
  [[nodiscard]] static Result<Tokens> Parse(std::string_view text,
                                            const std::string& file);
  // Returns the host of a token; nullopt if it is not known. Takes the same
  // time in each case.
  std::optional<std::string> HostOf(std::string_view token_untrusted) const;
  size_t size() const { return tokens_.size(); }

 private:
  struct Token {
    std::string host;
    transfer::Sha256::Value digest;
  };
  std::vector<Token> tokens_;
};

// The file of denied certificates, one line a fingerprint, "#" begins a
// comment: SHA-256 in hexadecimal, with or without colons, as
// 'openssl x509 -fingerprint -sha256' prints it behind the "=". That of an
// authority between denies all that it signed.
class DeniedCertificates {
 public:
  static constexpr size_t kDeniedMax = 65536;
  // Fails with kInvalidArgument, with file and line, if a line is not of this
  // form or there are more than kDeniedMax.
  [[nodiscard]] static Result<DeniedCertificates> Parse(
      std::string_view text, const std::string& file);
  bool Has(const transfer::CertificateHolder& holder) const;

 private:
  std::set<transfer::Sha256::Value> fingerprints_;
};

struct NewToken {
  std::string token;
  std::string line;  // for the tokens file
};
// Makes a random token. Fails with kInvalidArgument if `host` is not the name
// of a host, and with kSystem if the system gives no random bytes.
[[nodiscard]] Result<NewToken> MakeToken(const std::string& host);

// Says whose call it is. Thread-safe.
//
// A client's certificate is checked here and not by the TLS library, which
// would end the connection without telling the client why. A certificate that
// does not hold is refused even with a good token.
class Authenticator {
 public:
  struct Options {
    std::string client_ca_file;     // empty: no certificates
    std::string tokens_file;        // empty: no tokens
    std::string denied_file{};      // empty: no certificate is denied
    std::set<std::string> readers;  // hosts that see all bundles; "*": all do
    // Hosts that see, delete and check all bundles; "*" stands for none here.
    std::set<std::string> engineers{};
    // Without TLS and tokens: everybody is "localhost", sees everything, and is
    // an engineer if `engineers` has "localhost".
    // The listener makes sure that everybody is on this host.
    bool trust_loopback = false;
  };
  // Fails with kInvalidArgument if there is nothing by which a client could be
  // known or a file does not parse, and with kSystem if one cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Authenticator>> Create(
      const Options& options);

  // Reads the files again; on failure, what was read before holds.
  [[nodiscard]] Status Reload();
  // Every error is a refusal of identity; its message says what to do.
  [[nodiscard]] Result<Caller> Identify(const Credentials& credentials) const;

 private:
  explicit Authenticator(const Options& options) : options_(options) {}
  Caller CallerOf(std::string host) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::optional<transfer::CertificateAuthority> authority_;
  std::optional<Tokens> tokens_;
  DeniedCertificates denied_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_AUTH_H_
