#include "transfer/certificate.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/check.h"

namespace clew::transfer {
namespace {

constexpr size_t kHostNameMax = 253;
constexpr size_t kChainMax =
    8;  // certificates of a stranger that are looked at

template <auto Free>
struct Freer {
  void operator()(auto* object) const { Free(object); }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Cert = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using Context = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;

Bio Reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// At most `max` of those in `pem`, in order.
std::vector<Cert> CertsIn(std::string_view pem, size_t max) {
  std::vector<Cert> certs;
  const Bio bio = Reader(pem);
  while (certs.size() < max) {
    Cert cert(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (cert == nullptr) {
      break;
    }
    certs.push_back(std::move(cert));
  }
  return certs;
}

std::string TimeText(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

std::string CommonName(X509* cert) {
  char text[256] = "";
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(cert),
                                             NID_commonName, text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

std::string FirstDnsName(X509* cert) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(cert, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      const auto* data = ASN1_STRING_get0_data(name->d.dNSName);
      return {reinterpret_cast<const char*>(data),
              static_cast<size_t>(ASN1_STRING_length(name->d.dNSName))};
    }
  }
  return "";
}

Status CheckTimes(X509* cert, const std::string& what) {
  if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
    return Unsupported("{} expired on {}; issue a new one", what,
                       TimeText(X509_get0_notAfter(cert)));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
    return Unsupported("{} is valid from {} on; compare the clocks", what,
                       TimeText(X509_get0_notBefore(cert)));
  }
  return {};
}

// Of the chain that was verified.
std::vector<Sha256::Value> FingerprintsOf(X509_STORE_CTX* context) {
  std::vector<Sha256::Value> found;
  STACK_OF(X509)* chain = X509_STORE_CTX_get0_chain(context);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    Sha256::Value digest{};
    unsigned size = 0;
    CLEW_CHECK(X509_digest(sk_X509_value(chain, i), EVP_sha256(),
                           reinterpret_cast<unsigned char*>(digest.data()),
                           &size) == 1 &&
                   size == digest.size(),
               "no digest of a certificate");
    found.push_back(digest);
  }
  return found;
}

}  // namespace

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= kHostNameMax &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
         });
}

Status CheckKeyPair(const std::string& cert_pem, const std::string& cert_file,
                    const std::string& key_pem, const std::string& key_file) {
  const auto certs = CertsIn(cert_pem, 1);
  if (certs.empty()) {
    return InvalidArgument("{:?} has no certificate in PEM", cert_file);
  }
  const Bio bio = Reader(key_pem);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) {
    return InvalidArgument("{:?} has no private key in PEM without a password",
                           key_file);
  }
  if (X509_check_private_key(certs[0].get(), key.get()) != 1) {
    return InvalidArgument(
        "the key in {:?} is not that of the certificate {:?}", key_file,
        cert_file);
  }
  return CheckTimes(certs[0].get(), fmt::format("certificate {:?}", cert_file));
}

struct CertificateAuthority::Store {
  std::unique_ptr<X509_STORE, Freer<X509_STORE_free>> store;
  std::string file;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Store> store)
    : store_(std::move(store)) {}
CertificateAuthority::CertificateAuthority(
    CertificateAuthority&& other) noexcept = default;
CertificateAuthority& CertificateAuthority::operator=(
    CertificateAuthority&& other) noexcept = default;
CertificateAuthority::~CertificateAuthority() = default;

Result<CertificateAuthority> CertificateAuthority::Parse(
    const std::string& pem, const std::string& file) {
  auto store = std::make_unique<Store>();
  store->store.reset(X509_STORE_new());
  store->file = file;
  const auto certs = CertsIn(pem, SIZE_MAX);
  if (certs.empty()) {
    return InvalidArgument("{:?} has no certificate in PEM", file);
  }
  for (const Cert& cert : certs) {
    X509_STORE_add_cert(store->store.get(), cert.get());
  }
  return CertificateAuthority(std::move(store));
}

Result<CertificateHolder> CertificateAuthority::HolderOf(
    std::string_view chain_pem_untrusted) const {
  const auto chain = CertsIn(chain_pem_untrusted, kChainMax);
  if (chain.empty()) {
    return Unsupported("the client's certificate cannot be read");
  }
  X509* cert = chain[0].get();
  std::string host = FirstDnsName(cert);
  host = host.empty() ? CommonName(cert) : host;
  const std::string what = fmt::format("certificate of host {:?}", host);
  STACK_OF(X509)* between = sk_X509_new_null();
  for (size_t i = 1; i < chain.size(); ++i) {
    sk_X509_push(between, chain[i].get());
  }
  const Context context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store_->store.get(), cert, between);
  X509_STORE_CTX_set_default(context.get(), "ssl_client");
  const bool good = X509_verify_cert(context.get()) == 1;
  sk_X509_free(between);
  if (!good) {
    CLEW_RETURN_IF_ERROR(CheckTimes(cert, what));
    return Unsupported(
        "{}: {}; wanted one for clients that is signed by the collector's "
        "client_ca",
        what,
        X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
  }
  if (!IsHostName(host)) {
    return Unsupported("{}: wanted a DNS name or common name of [A-Za-z0-9._-]",
                       what);
  }
  return CertificateHolder{.host = std::move(host),
                           .fingerprints = FingerprintsOf(context.get())};
}

}  // namespace clew::transfer
