// Types of the core group, without pods.
#include "src/testing/api_schema.hpp"

namespace kubeopera::inline v1::testing::api {

const std::string_view schema_core = R"(@ConfigMap immutable:b? data:{s} binaryData:{by}
@Secret immutable:b? data:{by} stringData:{s} type:s
@Namespace spec:NamespaceSpec~ status:NamespaceStatus~
NamespaceSpec finalizers:[s]
NamespaceStatus phase:s conditions:[NamespaceCondition]/type
NamespaceCondition type:s~ status:s~ lastTransitionTime:t~ reason:s message:s
@Event involvedObject:ObjectReference!~ reason:s message:s source:EventSource~ firstTimestamp:t~ lastTimestamp:t~ count:i type:s
  eventTime:mt~ series:EventSeries action:s related:ObjectReference! reportingComponent:s~ reportingInstance:s~
EventSource component:s host:s
EventSeries count:i lastObservedTime:mt
@Service spec:ServiceSpec~ status:ServiceStatus~
ServiceSpec ports:[ServicePort]/port,protocol selector:{s}! clusterIP:s clusterIPs:[s] type:s="ClusterIP" externalIPs:[s]
  sessionAffinity:s="None" loadBalancerIP:s loadBalancerSourceRanges:[s] externalName:s externalTrafficPolicy:s healthCheckNodePort:i
  publishNotReadyAddresses:b sessionAffinityConfig:SessionAffinityConfig ipFamilies:[s] ipFamilyPolicy:s?
  allocateLoadBalancerNodePorts:b? loadBalancerClass:s? internalTrafficPolicy:s? trafficDistribution:s?
ServicePort name:s protocol:s="TCP" appProtocol:s? port:i~ targetPort:is~ nodePort:i
SessionAffinityConfig clientIP:ClientIPConfig
ClientIPConfig timeoutSeconds:i?
ServiceStatus loadBalancer:LoadBalancerStatus~ conditions:[Condition]/type
LoadBalancerStatus ingress:[LoadBalancerIngress]
LoadBalancerIngress ip:s hostname:s ipMode:s? ports:[PortStatus]
PortStatus port:i~ protocol:s~ error:s?
@Endpoints subsets:[EndpointSubset]
EndpointSubset addresses:[EndpointAddress] notReadyAddresses:[EndpointAddress] ports:[EndpointPort]
EndpointAddress ip:s~ hostname:s nodeName:s? targetRef:ObjectReference
EndpointPort name:s port:i~ protocol:s="TCP" appProtocol:s?
@ServiceAccount secrets:[ObjectReference]/name imagePullSecrets:[LocalObjectReference]/name automountServiceAccountToken:b?
@PersistentVolumeClaim spec:PersistentVolumeClaimSpec~ status:PersistentVolumeClaimStatus~
PersistentVolumeClaimSpec accessModes:[s] selector:LabelSelector! resources:VolumeResourceRequirements~ volumeName:s storageClassName:s?
  volumeMode:s?="Filesystem" dataSource:TypedLocalObjectReference! dataSourceRef:TypedObjectReference volumeAttributesClassName:s?
VolumeResourceRequirements limits:{q} requests:{q}
PersistentVolumeClaimStatus phase:s accessModes:[s] capacity:{q} conditions:[PersistentVolumeClaimCondition]/type allocatedResources:{q}
  allocatedResourceStatuses:{s}! currentVolumeAttributesClassName:s? modifyVolumeStatus:x
PersistentVolumeClaimCondition type:s~ status:s~ lastProbeTime:t~ lastTransitionTime:t~ reason:s message:s
@PersistentVolume spec:PersistentVolumeSpec~ status:PersistentVolumeStatus~
PersistentVolumeSpec capacity:{q} accessModes:[s] claimRef:ObjectReference persistentVolumeReclaimPolicy:s="Retain" storageClassName:s
  mountOptions:[s] volumeMode:s?="Filesystem" nodeAffinity:x hostPath:HostPathVolumeSource local:x nfs:NFSVolumeSource csi:x
  volumeAttributesClassName:s?
PersistentVolumeStatus phase:s="Pending" message:s reason:s lastPhaseTransitionTime:t
@Node spec:NodeSpec~ status:NodeStatus~
NodeSpec podCIDR:s podCIDRs:[s]* providerID:s unschedulable:b taints:[Taint] configSource:x
Taint key:s~ value:s effect:s~ timeAdded:t
NodeStatus capacity:{q} allocatable:{q} phase:s conditions:[NodeCondition]/type addresses:[NodeAddress]/type
  daemonEndpoints:NodeDaemonEndpoints~ nodeInfo:NodeSystemInfo~ images:[ContainerImage] volumesInUse:[s] volumesAttached:[x] config:x
  runtimeHandlers:[x] features:x
NodeCondition type:s~ status:s~ lastHeartbeatTime:t~ lastTransitionTime:t~ reason:s message:s
NodeAddress type:s~ address:s~
NodeDaemonEndpoints kubeletEndpoint:DaemonEndpoint~
DaemonEndpoint Port:i~
NodeSystemInfo machineID:s~ systemUUID:s~ bootID:s~ kernelVersion:s~ osImage:s~ containerRuntimeVersion:s~ kubeletVersion:s~
  kubeProxyVersion:s~ operatingSystem:s~ architecture:s~ swap:x
ContainerImage names:[s] sizeBytes:l
@ResourceQuota spec:ResourceQuotaSpec~ status:ResourceQuotaStatus~
ResourceQuotaSpec hard:{q} scopes:[s] scopeSelector:ScopeSelector!
ScopeSelector matchExpressions:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement scopeName:s~ operator:s~ values:[s]
ResourceQuotaStatus hard:{q} used:{q}
@LimitRange spec:LimitRangeSpec~
LimitRangeSpec limits:[LimitRangeItem]~
LimitRangeItem type:s~ max:{q} min:{q} default:{q} defaultRequest:{q} maxLimitRequestRatio:{q}
@PodTemplate template:PodTemplateSpec~
@ReplicationController spec:ReplicationControllerSpec~ status:ReplicationControllerStatus~
ReplicationControllerSpec replicas:i?=1 minReadySeconds:i selector:{s}! template:PodTemplateSpec
ReplicationControllerStatus replicas:i~ fullyLabeledReplicas:i readyReplicas:i availableReplicas:i observedGeneration:l
  conditions:[WorkloadCondition]/type
)";

}  // namespace kubeopera::inline v1::testing::api
