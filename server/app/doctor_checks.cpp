// What doctor looks at beside clusters: database, broker, secrets, this machine.
#include "server/app/doctor_subject.hpp"
#include "server/app/migrations.hpp"
#include "server/app/roles.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/http/url.hpp>
#include <kubeopera/postgres/pool.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sys/resource.h>
#include <sys/statvfs.h>

namespace kubeopera::inline v1::app {

std::string words_of(const error& e) {
  auto text = e.message();
  auto violations = e.violations();
  for (const auto& v : violations) text += "; " + v.pointer + " " + v.message;
  if (!e.detail().empty()) text += " (" + e.detail() + ")";
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

double now_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void judge_clock(examination& out, const std::string& area, double theirs, double before, double after) {
  double off = theirs < before ? theirs - before : theirs > after ? theirs - after : 0;
  char text[80];
  std::snprintf(text, sizeof text, "%.1f s %s ours", std::fabs(off), off < 0 ? "behind" : "ahead of");
  const char* remedy = "set the clocks of both machines by NTP: timedatectl set-ntp true, or chrony";
  if (std::fabs(off) > 30) return out.fail(area, "clock", text, remedy);
  if (std::fabs(off) > 2) return out.warn(area, "clock", text, remedy);
  out.ok(area, "clock", "agrees with ours");
}

void judge_certificate(examination& out, const std::string& area, const std::string& check, const std::string& pem,
                       const std::string& remedy) {
  auto facts = crypto::read_certificate_pem(pem);
  if (!facts) return out.fail(area, check, words_of(facts.error()), remedy);
  auto left = facts->not_after - std::chrono::system_clock::now();
  auto days = std::chrono::duration_cast<std::chrono::hours>(left).count() / 24;
  auto when = format_rfc3339(facts->not_after);
  if (left.count() <= 0) return out.fail(area, check, "expired at " + when, remedy);
  if (days < 14) return out.warn(area, check, "ends in " + std::to_string(days) + " days, at " + when, remedy);
  out.ok(area, check, "valid for " + std::to_string(days) + " days");
}

// ---- database -------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* facts_sql =
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as version, "
    "pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only, "
    "extract(epoch from clock_timestamp())::float8 as clock, to_regclass('schema_migrations') is not null as has_schema, "
    "current_setting('max_connections')::int as connections";

constexpr const char* rights_sql =
    "select has_table_privilege('apps', 'select, insert, update, delete') and "
    "has_table_privilege('outbox', 'select, insert, update, delete') as may_write, (select coalesce(extract(epoch from now() - "
    "min(created_at)), 0)::int from outbox where done_at is null and dead_at is null) as waiting";

std::string unreachable_remedy(const doctor_subject& s, const error& e) {
  if (s.embedded && !s.running) return "start the server, which starts its PostgreSQL: " + s.start_command;
  if (s.embedded) return "stop the server and start it again; " + s.directory + "/postgres/postgres.log says what happened";
  if (e.reason() == "BadDatabaseUrl") return "correct DATABASE_URL: postgres://USER:PASSWORD@HOST:5432/DATABASE";
  if (e.reason() == "AuthenticationRefused") return "correct the user and the password in DATABASE_URL";
  if (e.reason() == "NoDatabase") return "create the database that DATABASE_URL names: createdb NAME";
  return "start PostgreSQL, or correct the host and port in DATABASE_URL; pg_isready tells from this machine";
}

task<bool> judge_schema(postgres::pool& db, const doctor_subject& s, bool there, examination& out) {
  auto remedy = s.embedded ? "start the server again, it migrates: " + s.start_command : std::string("run: kubeopera migrate");
  auto wanted = api_schema_migrations();
  std::set<std::int64_t> missing;
  for (const auto& m : wanted) missing.insert(m.number);
  std::int64_t newest = 0;
  if (there) {
    postgres::statement st("select number from schema_migrations");
    KUBEOPERA_CO_TRY(auto r, co_await db.query(st));
    for (std::size_t i = 0; i < r.size(); ++i) {
      missing.erase(r.integer(i, "number"));
      newest = std::max(newest, r.integer(i, "number"));
    }
  }
  if (!missing.empty()) {
    out.fail("database", "schema",
             std::to_string(missing.size()) + " of " + std::to_string(wanted.size()) + " migrations are missing", remedy);
    co_return false;
  }
  if (newest > wanted.back().number)
    out.warn("database", "schema", "was migrated by a newer version of kubeopera", "run that version here too");
  else
    out.ok("database", "schema", std::to_string(wanted.size()) + " migrations are applied");
  co_return true;
}

task<void> judge_rights(postgres::pool& db, const doctor_subject& s, bool read_only, examination& out) {
  postgres::statement st(rights_sql);
  KUBEOPERA_CO_TRY(auto r, co_await db.query(st));
  if (read_only)
    out.fail("database", "writes", "it takes no writes: a standby, or read-only by its settings",
             "name the primary in DATABASE_URL");
  else if (!r.boolean(0, "may_write"))
    out.fail("database", "writes", "the user may not write to the tables",
             "give it the schema: grant all on all tables in schema kubeopera to the user");
  else
    out.ok("database", "writes", "allowed");
  auto waiting = r.integer(0, "waiting");
  if (waiting > 60)
    out.warn("database", "outbox", "its oldest row has waited for " + std::to_string(waiting) + " s",
             "look whether a process with the role api runs, and for \"outbox\" in its log: " + s.start_command);
  else
    out.ok("database", "outbox", "nothing waits for long");
  co_return result<void>();
}

}  // namespace

task<void> examine_database(std::shared_ptr<const doctor_subject> s, examination& out) {
  if (s->configured.database_url.empty()) co_return result<void>();
  postgres::pool_options o;
  o.url = s->configured.database_url;
  o.schema = find_role("api")->schema;
  o.size = 1;
  o.application_name = "kubeopera doctor";
  auto db = postgres::make_pool(s->executor, o);
  postgres::statement ask(facts_sql);
  // The first answer takes a connection with it, which is not what the clock is about.
  auto facts = co_await db->query(ask);
  if (!facts) {
    auto e = facts.error();
    out.fail("database", "reachable", words_of(e), unreachable_remedy(*s, e));
    co_return result<void>();
  }
  auto before = now_seconds();
  facts = co_await db->query(ask);
  auto after = now_seconds();
  if (!facts) co_return facts.error();
  out.ok("database", "reachable", "PostgreSQL " + facts->str(0, "version"));
  if (facts->integer(0, "number") < 150000)
    out.fail("database", "version", "PostgreSQL " + facts->str(0, "version") + " is too old", "upgrade it to 15 or newer");
  else
    out.ok("database", "version", "15 or newer");
  judge_clock(out, "database", std::strtod(facts->str(0, "clock").c_str(), nullptr), before, after);
  KUBEOPERA_CO_TRY(bool complete, co_await judge_schema(*db, *s, facts->boolean(0, "has_schema"), out));
  if (complete) KUBEOPERA_CO_CHECK(co_await judge_rights(*db, *s, facts->boolean(0, "read_only"), out));
  db->close();
  co_return result<void>();
}

// ---- broker ---------------------------------------------------------------------------------------------------------

namespace {

// AMQP 0-9-1, 4.2.2: eight bytes from us; a method frame (type 1) or the broker's own version comes back. No login is tried.
task<void> greet_broker(std::string host, std::string port) {
  auto executor = co_await current_executor();
  boost::asio::ip::tcp::resolver names(executor);
  boost::asio::ip::tcp::socket socket(executor);
  boost::system::error_code ec;
  auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ec);
  auto found = co_await names.async_resolve(host, port, token);
  if (!ec) co_await boost::asio::async_connect(socket, found, token);
  if (ec) co_return error(errc::unavailable, "ConnectFailed", host + ":" + port + ": " + ec.message());
  const std::string hello("AMQP\0\0\x09\x01", 8);
  std::string answer(8, '\0');
  co_await boost::asio::async_write(socket, boost::asio::buffer(hello), token);
  if (!ec) co_await boost::asio::async_read(socket, boost::asio::buffer(answer.data(), 7), token);
  if (ec) co_return error(errc::unavailable, "NoAnswer", host + ":" + port + " does not answer as an AMQP broker does");
  if (answer.starts_with("AMQP") || answer[0] != 1)
    co_return error(errc::unsupported, "NotAmqp", host + ":" + port + " does not speak AMQP 0-9-1");
  co_return result<void>();
}

}  // namespace

task<void> examine_broker(std::shared_ptr<const doctor_subject> s, examination& out) {
  std::string url = s->configured.broker_url;
  if (url.empty()) co_return result<void>();
  bool tls = url.starts_with("amqps://");
  auto rest = url.substr(std::min(url.size(), url.find("://") == std::string::npos ? url.size() : url.find("://") + 3));
  rest = rest.substr(0, rest.find('/'));
  if (auto at = rest.rfind('@'); at != std::string::npos) rest = rest.substr(at + 1);
  if (rest.empty() || (!tls && !url.starts_with("amqp://"))) {
    out.fail("broker", "address", "RABBITMQ_URL is no amqp:// or amqps:// address",
             "set RABBITMQ_URL to amqp://USER:PASSWORD@HOST:5672/VHOST");
    co_return result<void>();
  }
  auto colon = rest.rfind(':');
  auto port = colon == std::string::npos ? std::string(tls ? "5671" : "5672") : rest.substr(colon + 1);
  auto host = rest.substr(0, colon);
  if (tls) {
    out.warn("broker", "reachable", host + ":" + port + " speaks TLS, which is not looked into",
             "try it with the broker's own tools");
    co_return result<void>();
  }
  auto greeted = co_await greet_broker(host, port);
  if (greeted)
    out.ok("broker", "reachable", host + ":" + port + " speaks AMQP 0-9-1");
  else
    out.fail("broker", "reachable", words_of(greeted.error()), "start RabbitMQ, or correct the host and port in RABBITMQ_URL");
  co_return result<void>();
}

// ---- secrets and the machine ----------------------------------------------------------------------------------------

void examine_secrets(const doctor_subject& s, examination& out) {
  if (s.configured.jwt_secret.empty() && !s.embedded) return;  // told with the settings
  auto strong = crypto::check_secret_strength(s.configured.jwt_secret, "the key of access tokens");
  auto remedy = s.embedded ? "delete " + s.key_place + " and start the server again: it makes a new key, and old tokens end"
                           : std::string("set it to the output of: openssl rand -base64 48 (the same for every process)");
  if (strong)
    out.ok("secrets", "token key", s.key_place + " is long enough");
  else
    out.fail("secrets", "token key", s.key_place + ": " + strong.error().message(), remedy);
  // postgres://USER:PASSWORD@...
  const auto& url = s.configured.database_url;
  auto begin = url.find("://");
  auto at = url.find('@');
  auto colon = begin == std::string::npos ? begin : url.find(':', begin + 3);
  if (colon == std::string::npos || at == std::string::npos || colon > at) return;
  auto password = url.substr(colon + 1, at - colon - 1);
  for (const char* common : {"", "postgres", "password", "changeme", "secret", "admin", "kubeopera", "123456", "test"})
    if (password == common)
      return out.warn("secrets", "database password", "is one that everybody tries first",
                      "alter role … password '…' with the output of openssl rand -base64 24, and change DATABASE_URL");
  out.ok("secrets", "database password", "is none of the usual ones");
}

namespace {

void examine_disk(const doctor_subject& s, examination& out) {
  std::error_code ec;
  std::filesystem::path dir = s.directory;
  if (!std::filesystem::is_directory(dir, ec)) {
    out.warn("machine", "folder", dir.string() + " does not exist",
             "make it, writable for the user that runs kubeopera: mkdir -p " + dir.string());
    while (!std::filesystem::is_directory(dir, ec) && dir.has_relative_path()) dir = dir.parent_path();
  }
  struct statvfs v{};
  if (::statvfs(dir.c_str(), &v) != 0) return;
  auto free_mib = static_cast<double>(v.f_bavail) * static_cast<double>(v.f_frsize) / 1048576.0;
  auto text = std::to_string(static_cast<long>(free_mib)) + " MiB free for " + s.directory;
  auto remedy = "free space there, or move the folder to a larger disk";
  bool few_inodes = v.f_files > 0 && static_cast<double>(v.f_favail) / static_cast<double>(v.f_files) < 0.02;
  if (free_mib < 200)
    out.fail("machine", "disk", text, remedy);
  else if (free_mib < 2048)
    out.warn("machine", "disk", text, remedy);
  else if (few_inodes)
    out.warn("machine", "disk", "fewer than 2 % of the file system's inodes are free", remedy);
  else
    out.ok("machine", "disk", text);
}

}  // namespace

void examine_machine(const doctor_subject& s, examination& out) {
  examine_disk(s, out);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  auto text = std::to_string(limit.rlim_cur) + " files may be open at once";
  auto remedy = "raise it: ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit";
  if (limit.rlim_cur < 256)
    out.fail("machine", "file limit", text, remedy);
  else if (limit.rlim_cur < 4096)
    out.warn("machine", "file limit", text + " (seen from this shell)", remedy);
  else
    out.ok("machine", "file limit", text);
}

}  // namespace kubeopera::inline v1::app
