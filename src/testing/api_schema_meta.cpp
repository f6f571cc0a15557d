// Types of metadata and of the small structures that many kinds share.
#include "src/testing/api_schema.hpp"

namespace kubeopera::inline v1::testing::api {

const std::string_view schema_meta =
    R"(ObjectMeta name:s generateName:s namespace:s selfLink:s uid:s resourceVersion:s generation:l
  creationTimestamp:t deletionTimestamp:t deletionGracePeriodSeconds:l? labels:{s} annotations:{s}
  ownerReferences:[OwnerReference!]/uid finalizers:[s]* managedFields:[ManagedFieldsEntry]
OwnerReference apiVersion:s~ kind:s~ name:s~ uid:s~ controller:b? blockOwnerDeletion:b?
ManagedFieldsEntry manager:s operation:s apiVersion:s time:t fieldsType:s fieldsV1:x subresource:s
ListMeta selfLink:s resourceVersion:s continue:s remainingItemCount:l?
LabelSelector matchLabels:{s} matchExpressions:[LabelSelectorRequirement]
LabelSelectorRequirement key:s~ operator:s~ values:[s]
Condition type:s~ status:s~ observedGeneration:l lastTransitionTime:t~ reason:s~ message:s~
ObjectReference kind:s namespace:s name:s uid:s apiVersion:s resourceVersion:s fieldPath:s
LocalObjectReference name:s
TypedLocalObjectReference apiGroup:s? kind:s~ name:s~
TypedObjectReference apiGroup:s? kind:s~ name:s~ namespace:s?
Preconditions uid:s? resourceVersion:s?
DeleteOptions kind:s apiVersion:s gracePeriodSeconds:l? preconditions:Preconditions orphanDependents:b? propagationPolicy:s? dryRun:[s]
  ignoreStoreReadErrorWithClusterBreakingPotential:b?
@Scale spec:ScaleSpec~ status:ScaleStatus~
ScaleSpec replicas:i
ScaleStatus replicas:i~ selector:s
@Eviction deleteOptions:DeleteOptions
@Binding target:ObjectReference!~
@TokenRequest spec:TokenRequestSpec~ status:TokenRequestStatus~
TokenRequestSpec audiences:[s]~ expirationSeconds:l?=3600 boundObjectRef:BoundObjectReference~
BoundObjectReference kind:s apiVersion:s name:s uid:s
TokenRequestStatus token:s~ expirationTimestamp:t~
@TokenReview spec:TokenReviewSpec~ status:TokenReviewStatus~
TokenReviewSpec token:s audiences:[s]
TokenReviewStatus authenticated:b user:UserInfo~ audiences:[s] error:s
UserInfo username:s uid:s groups:[s] extra:{[s]}
@SelfSubjectReview status:SelfSubjectReviewStatus~
SelfSubjectReviewStatus userInfo:UserInfo~
@SelfSubjectAccessReview spec:SelfSubjectAccessReviewSpec~ status:SubjectAccessReviewStatus~
SelfSubjectAccessReviewSpec resourceAttributes:ResourceAttributes nonResourceAttributes:NonResourceAttributes
ResourceAttributes namespace:s verb:s group:s version:s resource:s subresource:s name:s fieldSelector:x labelSelector:x
NonResourceAttributes path:s verb:s
SubjectAccessReviewStatus allowed:b~ denied:b reason:s evaluationError:s
)";

}  // namespace kubeopera::inline v1::testing::api
