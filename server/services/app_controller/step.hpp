// What one reconcile knows and has decided so far, and the pure parts: status conditions, Flux objects, the reading of Flux's
// words.
#pragma once

#include "server/services/app_controller/reconciler.hpp"

#include <kubeopera/core/trace.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::app_controller {

struct reconciler::step {
  kube::object_key key;
  kube::object object;
  manifest::app_resource_spec spec;
  manifest::app_resource_status before, status;
  std::string directory;
  std::shared_ptr<kube::client> inside;
  app_service::render_reply rendered;

  /// Who asked for this state: the annotations, and where they are not what they should be, the spec.
  std::string actor() const;
  std::string request_id() const;
  std::optional<trace_context> trace() const;
  /// Kubeopera-App, -Revision, -Actor, -Request-Id and Traceparent, as far as they are known.
  std::vector<std::pair<std::string, std::string>> trailers() const;
  /// What a person would search the log for.
  field_list ids() const;
};

inline constexpr const char* flux_namespace = "flux-system";
inline constexpr const char* source_name = "fleet";
inline constexpr const char* resource_annotation = "kubeopera.io/resource";
inline constexpr const char* field_manager = "kubeopera-app-controller";

/// Sets a condition; lastTransitionTime moves only when the status word does.
void set_condition(manifest::app_resource_status& s, const std::string& type, std::string_view status, std::string reason,
                   std::string message, std::int64_t generation, system_time now);
/// The three summary conditions (kstatus) and the phase.
void set_summary(manifest::app_resource_status& s, std::string_view ready, bool reconciling, bool stalled,
                 const std::string& reason, const std::string& message, std::int64_t generation, system_time now);

kube::object make_source(const options& o);
kube::object make_kustomization(const options& o, const kube::object_key& resource, const std::string& app,
                                const std::string& directory);
/// True where `live` already says what `wanted` says about labels, our annotations and spec.
bool covers(const kube::object& live, const kube::object& wanted);

/// "main@sha1:<hex>" and the older forms -> the hex part.
std::string revision_commit(std::string_view revision);

/// What Flux says about one Kustomization.
struct delivery {
  enum class kind { applied, waiting, failed, suspended };
  kind what = kind::waiting;
  std::string reason, message;
};
/// @param applied whether the applied revision holds our commit, @param attempted whether the attempted one does
delivery judge_delivery(const kube::object& kustomization, bool applied, bool attempted);
/// True where a change of its Kustomization may end the delivery of an app that is delivered: somebody changed it, it fails, it
/// is suspended or goes away. False for Flux's steps on the way from one revision to the next.
bool undoes_delivery(const kube::object& before, const kube::object& now);
/// True where the app's resource says that its present generation is delivered.
bool is_delivered(const kube::object& app);

}  // namespace kubeopera::inline v1::app_controller
