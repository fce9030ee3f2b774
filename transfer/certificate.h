#ifndef CLEW_TRANSFER_CERTIFICATE_H_
#define CLEW_TRANSFER_CERTIFICATE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "transfer/sha256.h"

namespace clew::transfer {

// Checks that `cert_pem` is a certificate that is valid now and `key_pem` its
// key. The file names are for messages. Fails with kInvalidArgument if either
// is not PEM or they are not a pair, and with kUnsupported if the certificate
// has expired or is not valid yet; the message says when.
[[nodiscard]] Status CheckKeyPair(const std::string& cert_pem,
                                  const std::string& cert_file,
                                  const std::string& key_pem,
                                  const std::string& key_file);

struct CertificateHolder {
  std::string host;
  // SHA-256 of each certificate from its own to the authority's, as
  // 'openssl x509 -fingerprint -sha256' prints it.
  std::vector<Sha256::Value> fingerprints;
};

// Whose signature on a client's certificate counts. Immutable; thread-safe.
class CertificateAuthority {
 public:
  // Fails with kInvalidArgument if `pem` has no certificate; `file` is for the
  // message.
  [[nodiscard]] static Result<CertificateAuthority> Parse(
      const std::string& pem, const std::string& file);
  CertificateAuthority(CertificateAuthority&& other) noexcept;
  CertificateAuthority& operator=(CertificateAuthority&& other) noexcept;
  ~CertificateAuthority();

  // Returns whom the certificate names: its first DNS name, or else its common
  // name. `chain_pem_untrusted` has it first, then those between it and the
  // authority. Fails with kUnsupported if it is not signed by the authority,
  // has expired, is not for clients or has no name that IsHostName accepts; the
  // message says what to do.
  [[nodiscard]] Result<CertificateHolder> HolderOf(
      std::string_view chain_pem_untrusted) const;

 private:
  struct Store;
  explicit CertificateAuthority(std::unique_ptr<Store> store);
  std::unique_ptr<Store> store_;
};

// Returns whether `name` may be a host's: 1 to 253 bytes of [A-Za-z0-9._-].
bool IsHostName(std::string_view name);

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_CERTIFICATE_H_
