#ifndef CLEW_DAEMON_CONFIG_RULES_H_
#define CLEW_DAEMON_CONFIG_RULES_H_

#include <string>

#include "common/result.h"
#include "daemon/config/config.h"
#include "recorder/redaction_rules.h"

namespace clew::daemon {

// What is taken out where `redaction` names no file: values of variables and
// arguments whose names say that they are secrets. Names in any case; a key's
// or password's *file* is none.
inline constexpr const char* kBuiltInRules =
    "environment drop "
    "*TOKEN*,*SECRET*,*PASSWORD*,*PASSWD*,*PASSPHRASE*,PASS,*_PASS,DBPASS,"
    "*_PWD,*_KEY,*APIKEY*,*API_KEY*,*ACCESS_KEY*,*PRIVATE_KEY*,"
    "*CREDENTIAL*,*_CREDS,AUTH,*_AUTH,*AUTHORIZATION*,*BEARER*,*JWT*,*COOKIE*,"
    "PEM,*_PEM,*_PFX,*_P12,*DATABASE_URL*,*DB_UR[IL]*,DSN,*_DSN,"
    "*CONNECTION_STRING*,*CONNECTIONSTRING*,*CONN_STR*,*REDIS_UR[IL]*,"
    "*MONGO*_UR[IL]*,*AMQP_UR[IL]*,*RABBITMQ_UR[IL]*,*BROKER_UR[IL]*,"
    "*POSTGRES*_UR[IL]*,*MYSQL_UR[IL]*,*WEBHOOK_URL*\n"
    "arguments drop-after "
    "-*password,-*passwd,-*passphrase,-pass,--pass,-*[-_.]pass,--pwd,"
    "-*[-_.]pwd,-*token,-*secret,-*api[-_]key,-*apikey,-*secret[-_]key,"
    "-*access[-_]key,-*account[-_]key,-*encryption[-_]key,-*credential,"
    "-*credentials,--auth,-*[-_]auth,-*authorization,-*bearer,-*jwt,-*cookie,"
    "--dsn,-*[-_]dsn,-*database[-_]ur[il],-*db[-_]ur[il],"
    "-*connection[-_]string\n"
    "arguments drop-value "
    "*password,*passwd,*passphrase,pass,*[-_.]pass,dbpass,pwd,*[-_.]pwd,"
    "*token,*secret,*_key,*api[-_.]key,*apikey,*secret[-_.]key,"
    "*access[-_.]key,*account[-_.]key,*accesskey,*accountkey,"
    "*encryption[-_.]key,*credential,*credentials,auth,*[-_.]auth,"
    "*authorization,*bearer,*jwt,*cookie,*[-_.]pem,dsn,*[-_.]dsn,"
    "*database[-_.]ur[il],*db[-_.]ur[il],*connection[-_.]string\n";

// Returns the rules in the file `path`; "-": in standard input; empty:
// kBuiltInRules. Fails with kInvalidArgument if they are not valid.
[[nodiscard]] Result<recorder::RedactionRules> ReadRules(
    const std::string& path);

// ReadConfig, and a look at the rules that it names.
[[nodiscard]] Result<Config> ReadCheckedConfig(const std::string& path);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CONFIG_RULES_H_
