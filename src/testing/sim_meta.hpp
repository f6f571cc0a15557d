// Small facts about Kubernetes objects that several controllers need: selectors, owners, conditions, quantities.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/kube/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing::sim {

using json::array;
using json::object;
using json::value;
using kube::object_key;
using kube::resource_type;

/// A metav1.LabelSelector (matchLabels and matchExpressions) against labels; an empty selector matches everything.
bool selects(const object& selector, const object* labels);
/// A plain map of labels, as Service.spec.selector, against labels.
bool selects_map(const object& wanted, const object* labels);
const object* labels_of(const object& o) noexcept;
const object* spec_of(const object& o) noexcept;

/// The controller's owner reference, or null.
const object* controller_ref(const object& o) noexcept;
bool controlled_by(const object& o, std::string_view owner_uid) noexcept;
object make_owner_ref(const resource_type& type, const object& owner, bool controller, bool block);
bool has_finalizer(const object& o, std::string_view name) noexcept;
void add_finalizer(object& o, std::string_view name);
void remove_finalizer(object& o, std::string_view name);
void set_annotation(object& o, std::string_view key, std::string_view text);

/// {"type":…} in an array of conditions, or null.
const object* condition_in(const array& conditions, std::string_view type) noexcept;
object* condition_in(array& conditions, std::string_view type) noexcept;
void erase_condition(array& conditions, std::string_view type);

/// "250m", "1.5", "2Gi" in thousandths. Source: apimachinery's resource.Quantity. Nothing where it is none.
std::optional<std::int64_t> parse_quantity(std::string_view text);
std::optional<std::int64_t> quantity_of(const value* v);
/// A count, CPU ("1500m", "2") or bytes in the shortest usual form.
std::string format_quantity(std::int64_t milli, bool binary);

/// An IntOrString against a total: "25%" rounded up or down.
int scaled_value(const value* v, int total, bool round_up, int fallback);
std::optional<system_time> time_of(const value* v);
/// True when the pod's Ready condition is True.
bool pod_ready(const object& pod) noexcept;
std::optional<system_time> pod_ready_since(const object& pod);
/// Not finished and not being deleted.
bool pod_active(const object& pod) noexcept;
bool pod_finished(const object& pod) noexcept;
/// The text of a 32-bit number in the alphabet Kubernetes uses for generated names.
std::string safe_encode(std::uint32_t number);
std::uint32_t fnv32a(std::string_view bytes) noexcept;
/// A Kubernetes duration such as "5s", "1m30s" or "10m". Nothing where it is none.
std::optional<duration> parse_go_duration(std::string_view text);
/// As Go prints it: "5.033239096s", "30.095175ms", "10m0s".
std::string format_go_duration(duration d);

}  // namespace kubeopera::inline v1::testing::sim
