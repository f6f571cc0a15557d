// Writes that ask first.
#include <kubeopera/kube/gated_client.hpp>

namespace kubeopera::inline v1::kube {
namespace {

template <class T>
task<T> refused(error why) {
  co_return why;
}

class gated_client final : public client {
 public:
  gated_client(std::shared_ptr<client> inner, std::function<result<void>()> gate)
      : inner_(std::move(inner)), gate_(std::move(gate)) {}

  task<object> get(const resource_type& type, const object_key& key) override { return inner_->get(type, key); }
  task<object_list> list(const resource_type& type, const std::string& ns, const list_options& options) override {
    return inner_->list(type, ns, options);
  }
  task<object> create(const resource_type& type, const object& obj, const write_options& options) override {
    if (auto open = gate_(); !open) return refused<object>(open.error());
    return inner_->create(type, obj, options);
  }
  task<object> replace(const resource_type& type, const object& obj, const write_options& options) override {
    if (auto open = gate_(); !open) return refused<object>(open.error());
    return inner_->replace(type, obj, options);
  }
  task<object> patch(const resource_type& type, const object_key& key, patch_kind kind, const json::value& body,
                     const write_options& options) override {
    if (auto open = gate_(); !open) return refused<object>(open.error());
    return inner_->patch(type, key, kind, body, options);
  }
  task<object> apply(const resource_type& type, const object& obj, const write_options& options) override {
    if (auto open = gate_(); !open) return refused<object>(open.error());
    return inner_->apply(type, obj, options);
  }
  task<void> remove(const resource_type& type, const object_key& key, const delete_options& options) override {
    if (auto open = gate_(); !open) return refused<void>(open.error());
    return inner_->remove(type, key, options);
  }
  task<std::unique_ptr<watch_stream>> watch(const resource_type& type, const std::string& ns,
                                            const watch_options& options) override {
    return inner_->watch(type, ns, options);
  }
  task<std::unique_ptr<http::body_source>> logs(const object_key& pod, const log_options& options) override {
    return inner_->logs(pod, options);
  }
  task<http::response> raw(http::request req, bool want_stream) override { return inner_->raw(std::move(req), want_stream); }

 private:
  std::shared_ptr<client> inner_;
  std::function<result<void>()> gate_;
};

}  // namespace

std::shared_ptr<client> make_gated_client(std::shared_ptr<client> inner, std::function<result<void>()> gate) {
  return std::make_shared<gated_client>(std::move(inner), std::move(gate));
}

}  // namespace kubeopera::inline v1::kube
