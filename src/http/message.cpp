// Header fields, whole-body reading and the in-process transport.
#include "src/http/text.hpp"

#include <kubeopera/http/message.hpp>
#include <kubeopera/http/transport.hpp>

#include <algorithm>

namespace kubeopera::inline v1::http {

std::optional<std::string_view> fields::get(std::string_view name) const noexcept {
  for (const auto& [key, value] : all_) {
    if (iequals(key, name)) return std::string_view(value);
  }
  return std::nullopt;
}

std::size_t fields::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [&](const auto& f) { return iequals(f.first, name); }));
}

void fields::set(std::string_view name, std::string value) {
  auto first = std::find_if(all_.begin(), all_.end(), [&](const auto& f) { return iequals(f.first, name); });
  if (first == all_.end()) {
    all_.emplace_back(std::string(name), std::move(value));
    return;
  }
  first->second = std::move(value);
  all_.erase(std::remove_if(first + 1, all_.end(), [&](const auto& f) { return iequals(f.first, name); }), all_.end());
}

void fields::erase(std::string_view name) {
  std::erase_if(all_, [&](const auto& f) { return iequals(f.first, name); });
}

task<std::string> read_all(body_source& source, std::size_t limit) {
  std::string all;
  for (;;) {
    auto piece = co_await source.next();
    if (!piece) co_return piece.error();
    if (piece->empty()) co_return all;
    if (piece->size() > limit - all.size()) {
      co_return error(errc::too_large, "BodyTooLarge", "the body is larger than " + std::to_string(limit) + " bytes");
    }
    if (all.empty())
      all = std::move(*piece);
    else
      all += *piece;
  }
}

namespace {

class ready_body final : public body_source {
 public:
  explicit ready_body(std::string bytes) : bytes_(std::move(bytes)) {}
  task<std::string> next() override { co_return std::exchange(bytes_, std::string()); }

 private:
  std::string bytes_;
};

// Keeps the handler alive as long as the coroutine that runs in it.
class local_transport final : public transport {
 public:
  explicit local_transport(handler h) : handler_(std::make_shared<handler>(std::move(h))) {}
  task<response> send(request req, bool want_stream) override { return exchange(handler_, std::move(req), want_stream); }

 private:
  static task<response> exchange(std::shared_ptr<handler> h, request req, bool want_stream) {
    bool head = req.method == "HEAD";
    response res;
    try {
      res = co_await (*h)(std::move(req));
    } catch (const std::exception& e) {
      co_return error(errc::internal, "HandlerFailed", "the handler failed").with_detail(e.what());
    }
    if (head) {
      res.body.clear();
      res.stream.reset();
    }
    if (want_stream && !res.stream) res.stream = make_body(std::exchange(res.body, std::string()));
    if (!want_stream && res.stream) {
      auto body = co_await read_all(*res.stream, local_limit);
      if (!body) co_return body.error();
      res.stream.reset();
      res.body = std::move(*body);
    }
    co_return res;
  }
  static constexpr std::size_t local_limit = 64u << 20;
  std::shared_ptr<handler> handler_;
};

}  // namespace

std::unique_ptr<body_source> make_body(std::string bytes) { return std::make_unique<ready_body>(std::move(bytes)); }

std::shared_ptr<transport> make_local_transport(handler h) { return std::make_shared<local_transport>(std::move(h)); }

}  // namespace kubeopera::inline v1::http
