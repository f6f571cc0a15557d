// libpq's non-blocking and pipeline modes over an Asio descriptor.
#include "src/postgres/connection.hpp"

#include "src/postgres/rows_impl.hpp"
#include "src/postgres/sqlstate.hpp"

#include <kubeopera/core/wait.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <libpq-fe.h>
#include <poll.h>
#include <unordered_map>

namespace kubeopera::inline v1::postgres {
namespace {

using descriptor = asio::posix::stream_descriptor;
using boost::system::error_code;

// A connection keeps at most this many prepared statements; what comes later is sent unprepared.
constexpr std::size_t max_prepared = 500;

error cancelled_error() { return {errc::cancelled, "Cancelled", "the statement was cancelled"}; }

std::string millis(duration d) { return std::to_string(std::max<long long>(1, d / std::chrono::milliseconds(1))); }

// One value of the options keyword: spaces and backslashes are escaped there.
std::string escape_option(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ' ' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string session_options(const connection_options& o, std::string_view from_url) {
  std::string out(from_url);
  auto set = [&out](std::string_view name, std::string_view value) {
    out += out.empty() ? "-c " : " -c ";
    out += name;
    out += '=';
    out += escape_option(value);
  };
  if (!o.schema.empty()) set("search_path", quote_identifier(o.schema) + ", public");
  set("statement_timeout", millis(o.statement_timeout));
  // A client that closed its socket has lost interest: the server looks for that while a statement runs.
  set("client_connection_check_interval", "1000");
  // Statements of ours are short; to compile one because its cost was estimated too high takes longer than to run it.
  set("jit", "off");
  set("TimeZone", "UTC");
  set("DateStyle", "ISO");
  return out;
}

// libpq quotes the part of a URL that it cannot read, which may be the password.
std::string without_quotes(std::string text) {
  if (auto at = text.find(": \""); at != std::string::npos) text.resize(at);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The value of one keyword in a URL or keyword string; the error is libpq's.
result<std::string> url_keyword(const std::string& url, std::string_view keyword) {
  char* problem = nullptr;
  PQconninfoOption* all = PQconninfoParse(url.c_str(), &problem);
  if (!all) {
    std::string text = problem ? problem : "out of memory";
    PQfreemem(problem);
    return error(errc::invalid_argument, "BadDatabaseUrl", "the database URL cannot be read").with_detail(without_quotes(text));
  }
  std::string value;
  for (auto* o = all; o->keyword; ++o)
    if (keyword == o->keyword && o->val) value = o->val;
  PQconninfoFree(all);
  return value;
}

std::string field(const PGresult* r, int code) {
  const char* text = PQresultErrorField(r, code);
  return text ? text : "";
}

diagnostics diagnose(const PGresult* r) {
  diagnostics d;
  d.state = field(r, PG_DIAG_SQLSTATE);
  d.message = field(r, PG_DIAG_MESSAGE_PRIMARY);
  d.detail = field(r, PG_DIAG_MESSAGE_DETAIL);
  d.constraint = field(r, PG_DIAG_CONSTRAINT_NAME);
  d.table = field(r, PG_DIAG_TABLE_NAME);
  return d;
}

void ignore_notice(void*, const PGresult*) {}

}  // namespace

std::string quote_identifier(std::string_view name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

struct connection::impl {
  PGconn* conn = nullptr;
  descriptor socket;
  connection_options options;
  std::unordered_map<std::string, std::string> prepared;  // text -> name
  std::size_t names = 0;
  bool in_flight = false;
  bool closed = false;
  std::string state;

  impl(asio::any_io_executor executor, connection_options o) : socket(std::move(executor)), options(std::move(o)) {}
  ~impl() { close(); }

  void close() noexcept {
    closed = true;
    detach();
    if (conn) PQfinish(conn);
    conn = nullptr;
  }
  // The descriptor belongs to libpq; ours only watches it.
  void detach() noexcept {
    if (socket.is_open()) socket.release();
  }
  error lost() {
    std::string text = conn ? PQerrorMessage(conn) : "closed";
    while (!text.empty() && text.back() == '\n') text.pop_back();
    close();
    return connection_error("ConnectionLost", "the database connection was lost", std::move(text));
  }

  task<void> wait(descriptor::wait_type what);
  task<void> wait_both();
  task<void> connect();
  task<void> send_out();
  task<result_ptr> next_result();
  task<std::vector<rows>> exchange(std::vector<const statement*> all);
  task<void> simple(const std::string& sql);
  struct sent;
  result<void> send_statement(const statement& st, std::vector<sent>& expected);
  result<void> take_result(result_ptr r, sent& s, std::vector<rows>& out, std::optional<error>& failure);
};

// What one message of the pipeline is, to know what its result means.
struct connection::impl::sent {
  enum class kind { prepare, query, sync } what;
  const std::string* sql = nullptr;
  std::string name;
};

task<void> connection::impl::wait(descriptor::wait_type what) {
  if (co_await detail::cancelled()) co_return cancelled_error();
  error_code ec;
  co_await socket.async_wait(what, asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return cancelled_error();
  co_return result<void>();
}

task<void> connection::impl::wait_both() {
  if (co_await detail::cancelled()) co_return cancelled_error();
  auto readable = socket.async_wait(descriptor::wait_read, asio::deferred);
  auto writable = socket.async_wait(descriptor::wait_write, asio::deferred);
  auto group = asio::experimental::make_parallel_group(std::move(readable), std::move(writable));
  co_await group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (co_await detail::cancelled()) co_return cancelled_error();
  co_return result<void>();
}

task<void> connection::impl::connect() {
  auto own = url_keyword(options.url, "options");
  if (!own) co_return own.error();
  std::string session = session_options(options, *own);
  const char* keys[] = {"dbname", "options", "fallback_application_name", "client_encoding", nullptr};
  const char* values[] = {options.url.c_str(), session.c_str(), options.application_name.c_str(), "UTF8", nullptr};
  conn = PQconnectStartParams(keys, values, 1);
  if (!conn) throw std::bad_alloc();
  PQsetNoticeReceiver(conn, ignore_notice, nullptr);
  if (PQstatus(conn) == CONNECTION_BAD) co_return lost();
  auto step = PGRES_POLLING_WRITING;
  while (step != PGRES_POLLING_OK) {
    if (step == PGRES_POLLING_FAILED) {
      std::string text = PQerrorMessage(conn);
      while (!text.empty() && text.back() == '\n') text.pop_back();
      co_return connection_error("DatabaseUnreachable", "the database cannot be reached", std::move(text));
    }
    // libpq may have opened another socket (next address, TLS refused), even under the same number.
    detach();
    error_code ec;
    socket.assign(PQsocket(conn), ec);
    if (ec) co_return connection_error("DatabaseUnreachable", "the database cannot be reached", ec.message());
    KUBEOPERA_CO_CHECK(co_await wait(step == PGRES_POLLING_READING ? descriptor::wait_read : descriptor::wait_write));
    step = PQconnectPoll(conn);
  }
  detach();
  socket.assign(PQsocket(conn));
  PQsetnonblocking(conn, 1);
  if (PQenterPipelineMode(conn) != 1) co_return lost();
  co_return result<void>();
}

task<void> connection::impl::send_out() {
  while (true) {
    int left = PQflush(conn);
    if (left == 0) co_return result<void>();
    if (left < 0) co_return lost();
    // The server may want to talk before it listens on: read while writing.
    KUBEOPERA_CO_CHECK(co_await wait_both());
    if (PQconsumeInput(conn) != 1) co_return lost();
  }
}

task<result_ptr> connection::impl::next_result() {
  while (PQisBusy(conn)) {
    KUBEOPERA_CO_CHECK(co_await wait(descriptor::wait_read));
    if (PQconsumeInput(conn) != 1) co_return lost();
  }
  co_return result_ptr(PQgetResult(conn));
}

result<void> connection::impl::send_statement(const statement& st, std::vector<sent>& expected) {
  std::vector<const char*> values(st.args.size());
  for (std::size_t i = 0; i < st.args.size(); ++i) values[i] = st.args[i].text() ? st.args[i].text()->c_str() : nullptr;
  auto count = static_cast<int>(values.size());
  std::string name;
  if (auto it = prepared.find(st.sql); it != prepared.end()) {
    name = it->second;
  } else {
    for (const auto& s : expected)
      if (s.what == sent::kind::prepare && *s.sql == st.sql) name = s.name;
  }
  int ok;
  if (name.empty() && prepared.size() >= max_prepared) {
    ok = PQsendQueryParams(conn, st.sql.c_str(), count, nullptr, values.data(), nullptr, nullptr, 0);
  } else {
    if (name.empty()) {
      name = "k" + std::to_string(++names);
      if (PQsendPrepare(conn, name.c_str(), st.sql.c_str(), 0, nullptr) != 1) return lost();
      expected.push_back({sent::kind::prepare, &st.sql, name});
    }
    ok = PQsendQueryPrepared(conn, name.c_str(), count, values.data(), nullptr, nullptr, 0);
  }
  if (ok != 1) return lost();
  expected.push_back({sent::kind::query, &st.sql, {}});
  return {};
}

result<void> connection::impl::take_result(result_ptr r, sent& s, std::vector<rows>& out, std::optional<error>& failure) {
  switch (PQresultStatus(r.get())) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
      if (s.what == sent::kind::prepare)
        prepared.emplace(*s.sql, s.name);
      else
        out.push_back(make_rows(std::move(r)));
      return {};
    case PGRES_PIPELINE_ABORTED:
      return {};
    case PGRES_FATAL_ERROR: {
      if (failure) return {};
      auto d = diagnose(r.get());
      if (d.state.empty()) return lost();
      state = d.state;
      failure = make_error(d);
      return {};
    }
    default:
      return lost();  // COPY: not spoken here
  }
}

task<std::vector<rows>> connection::impl::exchange(std::vector<const statement*> all) {
  std::vector<sent> expected;
  expected.reserve(all.size() * 2 + 1);
  in_flight = true;
  for (const auto* st : all) KUBEOPERA_CO_CHECK(send_statement(*st, expected));
  if (PQpipelineSync(conn) != 1) co_return lost();
  KUBEOPERA_CO_CHECK(co_await send_out());
  std::vector<rows> out;
  out.reserve(all.size());
  std::optional<error> failure;
  std::size_t at = 0;
  while (true) {
    auto r = co_await next_result();
    if (!r) {
      if (failure && r.error().code() == errc::unavailable) co_return *failure;  // a FATAL error, then the end
      co_return r.error();
    }
    if (!*r) {
      // One end for each message; one more when the commit at the sync itself fails (a deferred constraint).
      if (++at > expected.size() + 1) co_return lost();
      continue;
    }
    if (PQresultStatus(r->get()) == PGRES_PIPELINE_SYNC) break;
    sent last{sent::kind::sync, nullptr, {}};
    KUBEOPERA_CO_CHECK(take_result(std::move(*r), at < expected.size() ? expected[at] : last, out, failure));
  }
  in_flight = false;
  if (failure) co_return *failure;
  if (out.size() != all.size()) co_return lost();
  co_return out;
}

task<void> connection::impl::simple(const std::string& sql) {
  in_flight = true;
  if (PQexitPipelineMode(conn) != 1 || PQsendQuery(conn, sql.c_str()) != 1) co_return lost();
  KUBEOPERA_CO_CHECK(co_await send_out());
  std::optional<error> failure;
  while (true) {
    auto r = co_await next_result();
    if (!r) co_return failure ? *failure : r.error();
    if (!*r) break;
    auto status = PQresultStatus(r->get());
    if (status == PGRES_FATAL_ERROR && !failure) {
      auto d = diagnose(r->get());
      state = d.state;
      failure = make_error(d);
      if (!d.message.empty()) failure = std::move(*failure).with_context("position", field(r->get(), PG_DIAG_STATEMENT_POSITION));
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      co_return lost();
    }
  }
  if (PQenterPipelineMode(conn) != 1) co_return lost();
  in_flight = false;
  if (failure) co_return *failure;
  co_return result<void>();
}

connection::connection(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
connection::~connection() = default;

task<std::unique_ptr<connection>> connection::open(asio::any_io_executor executor, connection_options options) {
  auto limit = options.connect_timeout;
  auto p = std::make_unique<impl>(std::move(executor), std::move(options));
  auto body = p->connect();
  auto r = co_await with_deadline<void>(limit, std::move(body));
  if (!r) {
    if (r.error().code() == errc::deadline_exceeded)
      co_return connection_error("DatabaseUnreachable", "the database cannot be reached", "no connection in time");
    co_return r.error();
  }
  co_return std::unique_ptr<connection>(new connection(std::move(p)));
}

task<std::vector<rows>> connection::run(std::vector<const statement*> all) {
  auto& c = *impl_;
  c.state.clear();
  if (c.closed) co_return c.lost();
  // The server ends a long statement; this limit is for a server that no longer answers at all.
  auto limit = c.options.statement_timeout * static_cast<int>(std::min<std::size_t>(all.size(), 10)) + std::chrono::seconds(5);
  auto body = c.exchange(std::move(all));
  auto r = co_await with_deadline<std::vector<rows>>(limit, std::move(body));
  if (c.in_flight || (c.conn && PQstatus(c.conn) == CONNECTION_BAD)) c.close();
  co_return r;
}

task<void> connection::script(const std::string& sql) {
  auto& c = *impl_;
  c.state.clear();
  if (c.closed) co_return c.lost();
  auto r = co_await c.simple(sql);
  if (c.in_flight) c.close();
  co_return r;
}

namespace {

asio::awaitable<void> wait_wake(notifier& wake, std::uint64_t ticket, duration longest) {
  auto r = co_await wake.wait_for(ticket, longest);
  (void)r.has_value();  // the caller looks at cancellation itself
}

bool tell(PGconn* conn, const std::function<void(std::string_view, std::string_view)>& on_notify) {
  bool any = false;
  while (PGnotify* n = PQnotifies(conn)) {
    std::unique_ptr<PGnotify, decltype(&PQfreemem)> owner(n, PQfreemem);
    on_notify(n->relname, n->extra);
    any = true;
  }
  return any;
}

asio::awaitable<void> wait_readable(descriptor& socket) {
  error_code ec;
  co_await socket.async_wait(descriptor::wait_read, asio::redirect_error(asio::use_awaitable, ec));
}

}  // namespace

task<void> connection::wait_notification(notifier& wake, std::uint64_t ticket, duration longest,
                                         const std::function<void(std::string_view, std::string_view)>& on_notify) {
  auto& c = *impl_;
  if (c.closed) co_return c.lost();
  if (co_await detail::cancelled()) co_return cancelled_error();
  if (tell(c.conn, on_notify)) co_return result<void>();  // came along with an answer
  auto readable = wait_readable(c.socket);
  auto woken = wait_wake(wake, ticket, longest);
  co_await first_of(std::move(readable), std::move(woken));
  if (co_await detail::cancelled()) co_return cancelled_error();
  if (PQconsumeInput(c.conn) != 1) co_return c.lost();
  tell(c.conn, on_notify);
  if (PQstatus(c.conn) == CONNECTION_BAD) co_return c.lost();
  co_return result<void>();
}

bool connection::usable() const noexcept { return !impl_->closed && !impl_->in_flight; }

bool connection::idle() const noexcept { return impl_->conn && PQtransactionStatus(impl_->conn) == PQTRANS_IDLE; }

bool connection::fresh() const noexcept {
  if (impl_->closed || PQstatus(impl_->conn) != CONNECTION_OK) return false;
  pollfd p{PQsocket(impl_->conn), POLLIN, 0};
  return ::poll(&p, 1, 0) == 0;
}

const std::string& connection::last_state() const noexcept { return impl_->state; }

int connection::backend_pid() const noexcept { return impl_->conn ? PQbackendPID(impl_->conn) : 0; }

}  // namespace kubeopera::inline v1::postgres
