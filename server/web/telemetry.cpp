#include "server/web/telemetry.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>

namespace kubeopera::inline v1::web {

struct telemetry::gauges {
  std::atomic<int> in_flight{0}, streams{0};
};

namespace {

// Callers choose the method; labels must be few.
std::string_view method_label(std::string_view method) {
  static constexpr std::array<std::string_view, 7> known = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  auto it = std::find(known.begin(), known.end(), method);
  return it == known.end() ? "other" : *it;
}

std::string_view status_class(int status) {
  static constexpr std::array<std::string_view, 6> words = {"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"};
  return words[static_cast<std::size_t>(std::clamp(status / 100, 0, 5))];
}

std::string_view route_label(const call& c) { return c.route.empty() ? "unmatched" : std::string_view(c.route); }

// "cloudSpaceId" -> "cloudspace_id", as everywhere else.
std::string log_name(std::string_view parameter) {
  bool id = parameter.ends_with("Id");
  if (id) parameter.remove_suffix(2);
  std::string out(parameter);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id ? out + "_id" : out;
}

field_list ids_of(const call& c) {
  field_list out;
  for (const auto& [name, value] : c.path) out.emplace_back(log_name(name), value);
  for (const auto& [name, value] : c.about)
    if (std::none_of(out.begin(), out.end(), [&n = name](const auto& f) { return f.first == n; })) out.emplace_back(name, value);
  return out;
}

// What probes and scrapers ask for every few seconds.
bool routine(const call& c) {
  return c.route == "/healthz" || c.route == "/livez" || c.route == "/readyz" || c.route == "/metrics";
}

// Counts a stream for as long as it is open.
template <class Gauges>
class counted_stream final : public http::body_source {
 public:
  counted_stream(std::unique_ptr<http::body_source> inner, std::shared_ptr<Gauges> all)
      : inner_(std::move(inner)), all_(std::move(all)) {
    ++all_->streams;
  }
  ~counted_stream() override { --all_->streams; }
  task<std::string> next() override { return inner_->next(); }

 private:
  std::unique_ptr<http::body_source> inner_;
  std::shared_ptr<Gauges> all_;
};

}  // namespace

telemetry::telemetry(std::string service, clock& clk, logger& log, metrics* stats)
    : service_(std::move(service)), clock_(clk), log_(log), stats_(stats), gauges_(std::make_shared<gauges>()) {
  if (!stats_) return;
  stats_->add_collector([service = service_, weak = std::weak_ptr<gauges>(gauges_)](metrics& all) {
    auto g = weak.lock();
    if (!g) return;
    all.gauge("kubeopera_http_requests_in_flight", "Requests whose reply has not begun", g->in_flight, {{"service", service}});
    all.gauge("kubeopera_http_streams_open", "Replies that are still being streamed", g->streams, {{"service", service}});
  });
}

telemetry::exchange::exchange(const telemetry& owner, const call& c) : owner_(owner), call_(c), begun_(owner.clock_.steady()) {
  ++owner_.gauges_->in_flight;
}

telemetry::exchange::~exchange() {
  --owner_.gauges_->in_flight;
  if (!finished_) count("aborted");
}

void telemetry::exchange::count(std::string_view status) {
  if (!owner_.stats_) return;
  auto method = method_label(call_.request.method);
  auto route = route_label(call_);
  owner_.stats_->count("kubeopera_http_requests_total", "Requests by the class of the reply's status",
                       {{"service", owner_.service_}, {"method", method}, {"route", route}, {"status", status}});
  owner_.stats_->observe("kubeopera_http_request_duration_seconds", "Time to the reply's head",
                         std::chrono::duration<double>(owner_.clock_.steady() - begun_).count(),
                         {{"service", owner_.service_}, {"method", method}, {"route", route}});
}

void telemetry::exchange::finish(http::response& reply, const std::optional<error>& why) {
  finished_ = true;
  count(status_class(reply.status));
  bool streams = reply.stream != nullptr;
  if (streams) reply.stream = std::make_unique<counted_stream<gauges>>(std::move(reply.stream), owner_.gauges_);
  auto ids = ids_of(call_);
  bool broken = reply.status >= 500;
  auto lvl = broken ? level::error : routine(call_) ? level::debug : level::info;
  owner_.log_.log(lvl, broken ? "request failed" : "request",
                  {{"service", owner_.service_},
                   {"request_id", call_.request_id},
                   {"trace_id", call_.trace.trace_id},
                   {"method", method_label(call_.request.method)},
                   {"route", route_label(call_)},
                   {"status", static_cast<long long>(reply.status)},
                   field::milliseconds("duration_ms", owner_.clock_.steady() - begun_),
                   {"stream", streams ? "true" : ""},
                   {"tenant_id", call_.who.tenant.value_or("")},
                   {"actor", call_.who.user},
                   field(ids),
                   {"reason", why ? why->reason() : std::string()},
                   {"error", why && broken ? to_string(*why) : std::string()}});
}

}  // namespace kubeopera::inline v1::web
