// The Kubernetes objects of one app, each made by one function.
#pragma once

#include <kubeopera/manifest/render.hpp>

#include <string>
#include <string_view>

namespace kubeopera::inline v1::manifest::objects {

/// What all objects of one app share.
struct frame {
  const app_spec& spec;
  const render_context& context;
  std::string ns;
  std::string image;
  json::object labels;

  json::object metadata(std::string_view name, bool namespaced = true) const;
  json::object selector() const;
  /// The address is the user's own domain, not one of the platform's.
  bool custom_domain() const { return spec.domain && *spec.domain == context.host; }
  /// More than one replica at some time.
  bool spread() const { return !spec.stopped && (spec.autoscaling ? spec.autoscaling->min_replicas > 1 : spec.replicas > 1); }
  bool scaled() const { return spec.autoscaling && !spec.stopped; }
};

frame make_frame(const app_spec& spec, const render_context& context);

json::object namespace_object(const frame& f);
json::object service_account(const frame& f);
json::object service(const frame& f);
json::object ingress(const frame& f);
json::object http_route(const frame& f);
json::object autoscaler(const frame& f);
json::object disruption_budget(const frame& f);
json::object network_policy(const frame& f);

/// The pod template without the annotations that tie it to a revision.
json::object pod_template(const frame& f);
json::object deployment(const frame& f, json::object pod_template);

}  // namespace kubeopera::inline v1::manifest::objects
