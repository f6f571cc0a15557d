// Types of the named groups: apps, batch, autoscaling, policy, networking, discovery, coordination, RBAC, storage, extensions.
#include "src/testing/api_schema.hpp"

namespace kubeopera::inline v1::testing::api {

const std::string_view schema_groups = R"(WorkloadCondition type:s~ status:s~ lastTransitionTime:t~ reason:s message:s
@Deployment spec:DeploymentSpec~ status:DeploymentStatus~
DeploymentSpec replicas:i?=1 selector:LabelSelector!~ template:PodTemplateSpec~ strategy:DeploymentStrategy~ minReadySeconds:i
  revisionHistoryLimit:i?=10 paused:b progressDeadlineSeconds:i?=600
DeploymentStrategy type:s="RollingUpdate" rollingUpdate:RollingUpdateDeployment
RollingUpdateDeployment maxUnavailable:is?="25%" maxSurge:is?="25%"
DeploymentStatus observedGeneration:l replicas:i updatedReplicas:i readyReplicas:i availableReplicas:i unavailableReplicas:i
  terminatingReplicas:i? conditions:[DeploymentCondition]/type collisionCount:i?
DeploymentCondition type:s~ status:s~ lastUpdateTime:t~ lastTransitionTime:t~ reason:s message:s
@ReplicaSet spec:ReplicaSetSpec~ status:ReplicaSetStatus~
ReplicaSetSpec replicas:i?=1 minReadySeconds:i selector:LabelSelector!~ template:PodTemplateSpec~
ReplicaSetStatus replicas:i~ fullyLabeledReplicas:i readyReplicas:i availableReplicas:i terminatingReplicas:i? observedGeneration:l
  conditions:[WorkloadCondition]/type
@StatefulSet spec:StatefulSetSpec~ status:StatefulSetStatus~
StatefulSetSpec replicas:i?=1 selector:LabelSelector!~ template:PodTemplateSpec~ volumeClaimTemplates:[PersistentVolumeClaim]
  serviceName:s~ podManagementPolicy:s="OrderedReady" updateStrategy:StatefulSetUpdateStrategy~ revisionHistoryLimit:i?=10
  minReadySeconds:i persistentVolumeClaimRetentionPolicy:StatefulSetRetention={} ordinals:StatefulSetOrdinals
StatefulSetUpdateStrategy type:s="RollingUpdate" rollingUpdate:StatefulSetRollingUpdate
StatefulSetRollingUpdate partition:i?=0 maxUnavailable:is?
StatefulSetRetention whenDeleted:s="Retain" whenScaled:s="Retain"
StatefulSetOrdinals start:i~
StatefulSetStatus observedGeneration:l replicas:i~ readyReplicas:i currentReplicas:i updatedReplicas:i currentRevision:s
  updateRevision:s collisionCount:i? conditions:[WorkloadCondition]/type availableReplicas:i
@DaemonSet spec:DaemonSetSpec~ status:DaemonSetStatus~
DaemonSetSpec selector:LabelSelector!~ template:PodTemplateSpec~ updateStrategy:DaemonSetUpdateStrategy~ minReadySeconds:i
  revisionHistoryLimit:i?=10
DaemonSetUpdateStrategy type:s="RollingUpdate" rollingUpdate:RollingUpdateDaemonSet
RollingUpdateDaemonSet maxUnavailable:is?=1 maxSurge:is?=0
DaemonSetStatus currentNumberScheduled:i~ numberMisscheduled:i~ desiredNumberScheduled:i~ numberReady:i~ observedGeneration:l
  updatedNumberScheduled:i numberAvailable:i numberUnavailable:i collisionCount:i? conditions:[WorkloadCondition]/type
@ControllerRevision data:x revision:l~
@Job spec:JobSpec~ status:JobStatus~
JobSpec parallelism:i? completions:i? activeDeadlineSeconds:l? podFailurePolicy:x successPolicy:x backoffLimit:i?=6
  backoffLimitPerIndex:i? maxFailedIndexes:i? selector:LabelSelector! manualSelector:b? template:PodTemplateSpec~
  ttlSecondsAfterFinished:i? completionMode:s?="NonIndexed" suspend:b?=false podReplacementPolicy:s? managedBy:s?
JobStatus conditions:[JobCondition] startTime:t completionTime:t active:i succeeded:i failed:i terminating:i? completedIndexes:s
  failedIndexes:s? uncountedTerminatedPods:UncountedTerminatedPods ready:i?
UncountedTerminatedPods succeeded:[s]* failed:[s]*
JobCondition type:s~ status:s~ lastProbeTime:t~ lastTransitionTime:t~ reason:s message:s
JobTemplateSpec metadata:ObjectMeta~ spec:JobSpec~
@CronJob spec:CronJobSpec~ status:CronJobStatus~
CronJobSpec schedule:s~ timeZone:s? startingDeadlineSeconds:l? concurrencyPolicy:s="Allow" suspend:b?=false jobTemplate:JobTemplateSpec~
  successfulJobsHistoryLimit:i?=3 failedJobsHistoryLimit:i?=1
CronJobStatus active:[ObjectReference!] lastScheduleTime:t lastSuccessfulTime:t
@HorizontalPodAutoscaler spec:HorizontalPodAutoscalerSpec~ status:HorizontalPodAutoscalerStatus~
HorizontalPodAutoscalerSpec scaleTargetRef:CrossVersionObjectReference~ minReplicas:i?=1 maxReplicas:i~ metrics:[MetricSpec]
  behavior:HorizontalPodAutoscalerBehavior
CrossVersionObjectReference kind:s~ name:s~ apiVersion:s
MetricSpec type:s~ object:ObjectMetricSource pods:PodsMetricSource resource:ResourceMetricSource
  containerResource:ContainerResourceMetricSource external:ExternalMetricSource
ResourceMetricSource name:s~ target:MetricTarget~
ContainerResourceMetricSource name:s~ target:MetricTarget~ container:s~
PodsMetricSource metric:MetricIdentifier~ target:MetricTarget~
ObjectMetricSource describedObject:CrossVersionObjectReference~ target:MetricTarget~ metric:MetricIdentifier~
ExternalMetricSource metric:MetricIdentifier~ target:MetricTarget~
MetricIdentifier name:s~ selector:LabelSelector!
MetricTarget type:s~ value:q? averageValue:q? averageUtilization:i?
HorizontalPodAutoscalerBehavior scaleUp:HPAScalingRules scaleDown:HPAScalingRules
HPAScalingRules stabilizationWindowSeconds:i? selectPolicy:s? policies:[HPAScalingPolicy] tolerance:q?
HPAScalingPolicy type:s~ value:i~ periodSeconds:i~
HorizontalPodAutoscalerStatus observedGeneration:l? lastScaleTime:t currentReplicas:i desiredReplicas:i~ currentMetrics:[MetricStatus]~
  conditions:[WorkloadCondition]/type
MetricStatus type:s~ object:x pods:x resource:ResourceMetricStatus containerResource:x external:x
ResourceMetricStatus name:s~ current:MetricValueStatus~
MetricValueStatus value:q? averageValue:q? averageUtilization:i?
@PodDisruptionBudget spec:PodDisruptionBudgetSpec~ status:PodDisruptionBudgetStatus~
PodDisruptionBudgetSpec minAvailable:is? selector:LabelSelector! maxUnavailable:is? unhealthyPodEvictionPolicy:s?
PodDisruptionBudgetStatus observedGeneration:l disruptedPods:{t} disruptionsAllowed:i~ currentHealthy:i~ desiredHealthy:i~
  expectedPods:i~ conditions:[Condition]/type
@Ingress spec:IngressSpec~ status:IngressStatus~
IngressSpec ingressClassName:s? defaultBackend:IngressBackend tls:[IngressTLS] rules:[IngressRule]
IngressBackend service:IngressServiceBackend resource:TypedLocalObjectReference!
IngressServiceBackend name:s~ port:ServiceBackendPort!
ServiceBackendPort name:s number:i
IngressTLS hosts:[s] secretName:s
IngressRule host:s http:HTTPIngressRuleValue
HTTPIngressRuleValue paths:[HTTPIngressPath]~
HTTPIngressPath path:s pathType:s?~ backend:IngressBackend~
IngressStatus loadBalancer:IngressLoadBalancerStatus~
IngressLoadBalancerStatus ingress:[LoadBalancerIngress]
@IngressClass spec:IngressClassSpec~
IngressClassSpec controller:s parameters:IngressClassParametersReference
IngressClassParametersReference apiGroup:s? kind:s~ name:s~ scope:s? namespace:s?
@NetworkPolicy spec:NetworkPolicySpec~
NetworkPolicySpec podSelector:LabelSelector!~ ingress:[NetworkPolicyIngressRule] egress:[NetworkPolicyEgressRule] policyTypes:[s]
NetworkPolicyIngressRule ports:[NetworkPolicyPort] from:[NetworkPolicyPeer]
NetworkPolicyEgressRule ports:[NetworkPolicyPort] to:[NetworkPolicyPeer]
NetworkPolicyPort protocol:s?="TCP" port:is? endPort:i?
NetworkPolicyPeer podSelector:LabelSelector! namespaceSelector:LabelSelector! ipBlock:IPBlock
IPBlock cidr:s~ except:[s]
@EndpointSlice addressType:s~ endpoints:[Endpoint]~ ports:[DiscoveryPort]~
Endpoint addresses:[s]*~ conditions:EndpointConditions~ hostname:s? targetRef:ObjectReference! deprecatedTopology:{s} nodeName:s? zone:s?
  hints:x
EndpointConditions ready:b? serving:b? terminating:b?
DiscoveryPort name:s? protocol:s? port:i? appProtocol:s?
@Lease spec:LeaseSpec~
LeaseSpec holderIdentity:s? leaseDurationSeconds:i? acquireTime:mt renewTime:mt leaseTransitions:i? strategy:s? preferredHolder:s?
@Role rules:[PolicyRule]~
@ClusterRole rules:[PolicyRule]~ aggregationRule:x
PolicyRule verbs:[s]~ apiGroups:[s] resources:[s] resourceNames:[s] nonResourceURLs:[s]
@RoleBinding subjects:[Subject] roleRef:RoleRef!~
@ClusterRoleBinding subjects:[Subject] roleRef:RoleRef!~
Subject kind:s~ apiGroup:s name:s~ namespace:s
RoleRef apiGroup:s~ kind:s~ name:s~
@StorageClass provisioner:s~ parameters:{s} reclaimPolicy:s?="Delete" mountOptions:[s] allowVolumeExpansion:b?
  volumeBindingMode:s?="Immediate" allowedTopologies:[x]
@PriorityClass value:i~ globalDefault:b description:s preemptionPolicy:s?="PreemptLowerPriority"
@CustomResourceDefinition spec:CustomResourceDefinitionSpec~ status:CustomResourceDefinitionStatus~
CustomResourceDefinitionSpec group:s~ names:CustomResourceDefinitionNames~ scope:s~ versions:[CustomResourceDefinitionVersion]~
  conversion:CustomResourceConversion preserveUnknownFields:b
CustomResourceDefinitionNames plural:s~ singular:s shortNames:[s] kind:s~ listKind:s categories:[s]
CustomResourceDefinitionVersion name:s~ served:b~ storage:b~ deprecated:b deprecationWarning:s? schema:CustomResourceValidation
  subresources:CustomResourceSubresources additionalPrinterColumns:[CustomResourceColumnDefinition] selectableFields:[SelectableField]
CustomResourceValidation openAPIV3Schema:x
CustomResourceSubresources status:CustomResourceSubresourceStatus scale:CustomResourceSubresourceScale
CustomResourceSubresourceStatus
CustomResourceSubresourceScale specReplicasPath:s~ statusReplicasPath:s~ labelSelectorPath:s?
CustomResourceColumnDefinition name:s~ type:s~ format:s description:s priority:i jsonPath:s~
SelectableField jsonPath:s~
CustomResourceConversion strategy:s~ webhook:x
CustomResourceDefinitionStatus conditions:[WorkloadCondition]/type~ acceptedNames:CustomResourceDefinitionNames~ storedVersions:[s]~
  observedGeneration:l
@ValidatingWebhookConfiguration webhooks:[x]
@MutatingWebhookConfiguration webhooks:[x]
@APIService spec:x status:x
@CertificateSigningRequest spec:x status:x
)";

}  // namespace kubeopera::inline v1::testing::api
