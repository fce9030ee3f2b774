#include "collector/service/auth.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "common/os/file.h"
#include "common/text/hex.h"
#include "common/text/words.h"

namespace clew::collector {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr size_t kTokenBytes = 32;

// Looks at every byte, wherever the first difference is.
bool SameDigest(const Sha256::Value& a, const Sha256::Value& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= std::to_integer<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

// Words of a line, up to a comment.
std::vector<std::string_view> WordsOf(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::string_view word = TakeWord(line, kLineBlanks); !word.empty();
       word = TakeWord(line, kLineBlanks)) {
    words.push_back(word);
  }
  return words;
}

// "AB:CD:..." or "abcd...".
std::optional<transfer::Sha256::Value> FingerprintOf(std::string_view word) {
  std::string digits;
  for (const char c : word) {
    if (c >= 'A' && c <= 'F') {
      digits += static_cast<char>(c - 'A' + 'a');
    } else if (c != ':') {
      digits += c;
    }
  }
  return transfer::FromHex(digits);
}

struct Line {
  size_t number;  // from 1
  std::vector<std::string_view> words;
};

// Those with words.
std::vector<Line> LinesOf(std::string_view text) {
  std::vector<Line> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    auto words = WordsOf(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!words.empty()) {
      lines.push_back({number, std::move(words)});
    }
  }
  return lines;
}

}  // namespace

Result<Tokens> Tokens::Parse(std::string_view text, const std::string& file) {
  Tokens tokens;
  for (const auto& [number, words] : LinesOf(text)) {
    const auto digest =
        words.size() == 2 ? transfer::FromHex(words[1]) : std::nullopt;
    if (!digest || !transfer::IsHostName(words[0])) {
      return InvalidArgument(
          "{}:{}: wanted a host's name and the SHA-256 of its token in 64 "
          "lower-case hexadecimal digits, as 'clew-collector token HOST' "
          "prints them",
          file, number);
    }
    if (tokens.tokens_.size() == kTokensMax) {
      return InvalidArgument("{}:{}: more than {} tokens", file, number,
                             kTokensMax);
    }
    tokens.tokens_.push_back(
        {.host = std::string(words[0]), .digest = *digest});
  }
  return tokens;
}

std::optional<std::string> Tokens::HostOf(
    std::string_view token_untrusted) const {
  const Sha256::Value digest =
      transfer::Sha256Of(std::as_bytes(std::span(token_untrusted)));
  const Token* found = nullptr;
  for (const Token& token : tokens_) {
    if (SameDigest(token.digest, digest)) {
      found = &token;
    }
  }
  return found == nullptr ? std::nullopt : std::optional(found->host);
}

Result<DeniedCertificates> DeniedCertificates::Parse(std::string_view text,
                                                     const std::string& file) {
  DeniedCertificates denied;
  for (const auto& [number, words] : LinesOf(text)) {
    const auto fingerprint =
        words.size() == 1 ? FingerprintOf(words[0]) : std::nullopt;
    if (!fingerprint) {
      return InvalidArgument(
          "{}:{}: wanted the SHA-256 fingerprint of a certificate, as 'openssl "
          "x509 -noout -fingerprint -sha256 -in FILE' prints it behind the "
          "\"=\"",
          file, number);
    }
    if (denied.fingerprints_.size() == kDeniedMax) {
      return InvalidArgument("{}:{}: more than {} fingerprints", file, number,
                             kDeniedMax);
    }
    denied.fingerprints_.insert(*fingerprint);
  }
  return denied;
}

bool DeniedCertificates::Has(const transfer::CertificateHolder& holder) const {
  return std::ranges::any_of(holder.fingerprints, [&](const auto& each) {
    return fingerprints_.contains(each);
  });
}

Result<NewToken> MakeToken(const std::string& host) {
  if (!transfer::IsHostName(host)) {
    return InvalidArgument("{:?} is no host's name, wanted [A-Za-z0-9._-]",
                           host);
  }
  transfer::Sha256::Value random;
  static_assert(sizeof random == kTokenBytes);
  if (getrandom(random.data(), random.size(), 0) != kTokenBytes) {
    return SystemError(errno, "no random bytes for a token");
  }
  const std::string token = ToHex(random);
  const auto digest = transfer::Sha256Of(std::as_bytes(std::span(token)));
  return NewToken{.token = token, .line = host + " " + ToHex(digest)};
}

Result<std::unique_ptr<Authenticator>> Authenticator::Create(
    const Options& options) {
  if (options.client_ca_file.empty() && options.tokens_file.empty() &&
      !options.trust_loopback) {
    return InvalidArgument(
        "nothing says who clients are; give client_ca (for certificates) or "
        "tokens");
  }
  std::unique_ptr<Authenticator> made(new Authenticator(options));
  CLEW_RETURN_IF_ERROR(made->Reload());
  return made;
}

Status Authenticator::Reload() {
  std::optional<transfer::CertificateAuthority> authority;
  std::optional<Tokens> tokens;
  if (!options_.client_ca_file.empty()) {
    CLEW_ASSIGN_OR_RETURN(pem, ReadWholeText(options_.client_ca_file));
    CLEW_ASSIGN_OR_RETURN(read, transfer::CertificateAuthority::Parse(
                                    pem, options_.client_ca_file));
    authority.emplace(std::move(read));
  }
  if (!options_.tokens_file.empty()) {
    CLEW_ASSIGN_OR_RETURN(text, ReadWholeText(options_.tokens_file));
    CLEW_ASSIGN_OR_RETURN(read, Tokens::Parse(text, options_.tokens_file));
    tokens.emplace(std::move(read));
  }
  DeniedCertificates denied;
  if (!options_.denied_file.empty()) {
    CLEW_ASSIGN_OR_RETURN(text, ReadWholeText(options_.denied_file));
    CLEW_ASSIGN_OR_RETURN(
        read, DeniedCertificates::Parse(text, options_.denied_file));
    denied = std::move(read);
  }
  const std::lock_guard lock(mutex_);
  denied_ = std::move(denied);
  authority_ = std::move(authority);
  tokens_ = std::move(tokens);
  return {};
}

Caller Authenticator::CallerOf(std::string host) const {
  const bool engineer = options_.engineers.contains(host);
  const bool reads_all = engineer || options_.readers.contains("*") ||
                         options_.readers.contains(host);
  return {
      .host = std::move(host), .reads_all = reads_all, .engineer = engineer};
}

Result<Caller> Authenticator::Identify(const Credentials& credentials) const {
  const std::lock_guard lock(mutex_);
  if (authority_ && !credentials.chain_pem_untrusted.empty()) {
    CLEW_ASSIGN_OR_RETURN(
        holder, authority_->HolderOf(credentials.chain_pem_untrusted));
    if (denied_.Has(holder)) {
      return Unsupported(
          "the certificate of host {:?} is denied by the collector's operator; "
          "issue a new one with a new key",
          holder.host);
    }
    return CallerOf(holder.host);
  }
  if (tokens_ && credentials.authorization_untrusted) {
    const std::string& value = *credentials.authorization_untrusted;
    const auto host =
        value.starts_with(kBearer)
            ? tokens_->HostOf(std::string_view(value).substr(kBearer.size()))
            : std::nullopt;
    if (!host) {
      return Unsupported(
          "the token is not known here; make one with 'clew-collector token "
          "HOST', add its line to the collector's tokens file and reload the "
          "collector");
    }
    return CallerOf(*host);
  }
  if (options_.trust_loopback && !tokens_ && !credentials.encrypted) {
    Caller caller = CallerOf("localhost");
    caller.reads_all = true;
    return caller;
  }
  return Unsupported("the call says not whose it is; this collector wants {}",
                     authority_ && tokens_
                         ? "a client certificate (cert and key) or a token"
                     : authority_ ? "a client certificate (cert and key)"
                                  : "a token (token_file)");
}

}  // namespace clew::collector
