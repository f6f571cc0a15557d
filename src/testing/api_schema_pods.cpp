// Types of pods: specification, containers, volumes, status.
#include "src/testing/api_schema.hpp"

namespace kubeopera::inline v1::testing::api {

const std::string_view schema_pods = R"(@Pod spec:PodSpec~ status:PodStatus~
PodTemplateSpec metadata:ObjectMeta~ spec:PodSpec~
PodSpec volumes:[Volume]/name initContainers:[Container]/name containers:[Container]/name~ ephemeralContainers:[EphemeralContainer]/name
  restartPolicy:s="Always" terminationGracePeriodSeconds:l?=30 activeDeadlineSeconds:l? dnsPolicy:s="ClusterFirst" nodeSelector:{s}!
  serviceAccountName:s serviceAccount:s automountServiceAccountToken:b? nodeName:s hostNetwork:b hostPID:b hostIPC:b
  shareProcessNamespace:b? securityContext:PodSecurityContext={} imagePullSecrets:[LocalObjectReference]/name hostname:s subdomain:s
  affinity:Affinity schedulerName:s="default-scheduler" tolerations:[Toleration] hostAliases:[HostAlias]/ip priorityClassName:s
  priority:i? dnsConfig:PodDNSConfig readinessGates:[PodReadinessGate] runtimeClassName:s? enableServiceLinks:b? preemptionPolicy:s?
  overhead:{q} topologySpreadConstraints:[TopologySpreadConstraint]/topologyKey,whenUnsatisfiable setHostnameAsFQDN:b? os:PodOS
  hostUsers:b? schedulingGates:[PodSchedulingGate]/name resourceClaims:[x] resources:ResourceRequirements hostnameOverride:s?
  schedulingGroup:x
PodOS name:s~
PodSchedulingGate name:s~
PodReadinessGate conditionType:s~
HostAlias ip:s~ hostnames:[s]
PodDNSConfig nameservers:[s] searches:[s] options:[PodDNSConfigOption]
PodDNSConfigOption name:s value:s?
Toleration key:s operator:s value:s effect:s tolerationSeconds:l?
TopologySpreadConstraint maxSkew:i~ topologyKey:s~ whenUnsatisfiable:s~ labelSelector:LabelSelector! minDomains:i? nodeAffinityPolicy:s?
  nodeTaintsPolicy:s? matchLabelKeys:[s]
PodSecurityContext seLinuxOptions:SELinuxOptions windowsOptions:x runAsUser:l? runAsGroup:l? runAsNonRoot:b? supplementalGroups:[l]
  supplementalGroupsPolicy:s? fsGroup:l? sysctls:[Sysctl] fsGroupChangePolicy:s? seccompProfile:SeccompProfile
  appArmorProfile:AppArmorProfile seLinuxChangePolicy:s?
Sysctl name:s~ value:s~
SELinuxOptions user:s role:s type:s level:s
SeccompProfile type:s~ localhostProfile:s?
AppArmorProfile type:s~ localhostProfile:s?
Affinity nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity
NodeAffinity requiredDuringSchedulingIgnoredDuringExecution:NodeSelector!
  preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
NodeSelector nodeSelectorTerms:[NodeSelectorTerm]~
NodeSelectorTerm matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]
NodeSelectorRequirement key:s~ operator:s~ values:[s]
PreferredSchedulingTerm weight:i~ preference:NodeSelectorTerm~
PodAffinity requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodAffinityTerm labelSelector:LabelSelector namespaces:[s] topologyKey:s~ namespaceSelector:LabelSelector matchLabelKeys:[s]
  mismatchLabelKeys:[s]
WeightedPodAffinityTerm weight:i~ podAffinityTerm:PodAffinityTerm~
Container name:s~ image:s command:[s] args:[s] workingDir:s ports:[ContainerPort]/containerPort,protocol envFrom:[EnvFromSource]
  env:[EnvVar]/name resources:ResourceRequirements~ resizePolicy:[ContainerResizePolicy] restartPolicy:s? restartPolicyRules:[x]
  volumeMounts:[VolumeMount]/mountPath volumeDevices:[VolumeDevice]/devicePath livenessProbe:Probe readinessProbe:Probe
  startupProbe:Probe lifecycle:Lifecycle terminationMessagePath:s="/dev/termination-log" terminationMessagePolicy:s="File"
  imagePullPolicy:s securityContext:SecurityContext stdin:b stdinOnce:b tty:b
EphemeralContainer name:s~ image:s command:[s] args:[s] workingDir:s ports:[ContainerPort]/containerPort,protocol
  envFrom:[EnvFromSource] env:[EnvVar]/name resources:ResourceRequirements~ volumeMounts:[VolumeMount]/mountPath
  terminationMessagePath:s="/dev/termination-log" terminationMessagePolicy:s="File" imagePullPolicy:s securityContext:SecurityContext
  stdin:b stdinOnce:b tty:b targetContainerName:s
ContainerPort name:s hostPort:i containerPort:i~ protocol:s="TCP" hostIP:s
ContainerResizePolicy resourceName:s~ restartPolicy:s~
EnvFromSource prefix:s configMapRef:OptionalNameRef secretRef:OptionalNameRef
OptionalNameRef name:s optional:b?
EnvVar name:s~ value:s valueFrom:EnvVarSource
EnvVarSource fieldRef:ObjectFieldSelector! resourceFieldRef:ResourceFieldSelector! configMapKeyRef:KeySelector! secretKeyRef:KeySelector!
  fileKeyRef:x
ObjectFieldSelector apiVersion:s="v1" fieldPath:s~
ResourceFieldSelector containerName:s resource:s~ divisor:q="0"
KeySelector name:s key:s~ optional:b?
ResourceRequirements limits:{q} requests:{q} claims:[ResourceClaim]/name
ResourceClaim name:s~ request:s
VolumeMount name:s~ readOnly:b recursiveReadOnly:s? mountPath:s~ subPath:s mountPropagation:s? subPathExpr:s
VolumeDevice name:s~ devicePath:s~
Probe exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction grpc:GRPCAction initialDelaySeconds:i timeoutSeconds:i=1
  periodSeconds:i=10 successThreshold:i=1 failureThreshold:i=3 terminationGracePeriodSeconds:l?
ExecAction command:[s]
HTTPGetAction path:s="/" port:is~ host:s scheme:s="HTTP" httpHeaders:[HTTPHeader]
HTTPHeader name:s~ value:s~
TCPSocketAction port:is~ host:s
GRPCAction port:i~ service:s?=""
SleepAction seconds:l~
Lifecycle postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:s?
LifecycleHandler exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction sleep:SleepAction
SecurityContext capabilities:Capabilities privileged:b? seLinuxOptions:SELinuxOptions windowsOptions:x runAsUser:l? runAsGroup:l?
  runAsNonRoot:b? readOnlyRootFilesystem:b? allowPrivilegeEscalation:b? procMount:s? seccompProfile:SeccompProfile
  appArmorProfile:AppArmorProfile
Capabilities add:[s] drop:[s]
Volume name:s~ hostPath:HostPathVolumeSource emptyDir:EmptyDirVolumeSource secret:SecretVolumeSource nfs:NFSVolumeSource
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource downwardAPI:DownwardAPIVolumeSource configMap:ConfigMapVolumeSource
  projected:ProjectedVolumeSource csi:CSIVolumeSource ephemeral:EphemeralVolumeSource image:ImageVolumeSource iscsi:x fc:x
  gcePersistentDisk:x awsElasticBlockStore:x azureFile:x azureDisk:x cephfs:x cinder:x glusterfs:x rbd:x flexVolume:x flocker:x
  quobyte:x vsphereVolume:x photonPersistentDisk:x portworxVolume:x scaleIO:x storageos:x gitRepo:x
HostPathVolumeSource path:s~ type:s?=""
EmptyDirVolumeSource medium:s sizeLimit:q?
SecretVolumeSource secretName:s items:[KeyToPath] defaultMode:i?=420 optional:b?
ConfigMapVolumeSource name:s items:[KeyToPath] defaultMode:i?=420 optional:b?
KeyToPath key:s~ path:s~ mode:i?
NFSVolumeSource server:s~ path:s~ readOnly:b
PersistentVolumeClaimVolumeSource claimName:s~ readOnly:b
CSIVolumeSource driver:s~ readOnly:b? fsType:s? volumeAttributes:{s} nodePublishSecretRef:LocalObjectReference
EphemeralVolumeSource volumeClaimTemplate:PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate metadata:ObjectMeta spec:PersistentVolumeClaimSpec~
ImageVolumeSource reference:s pullPolicy:s
DownwardAPIVolumeSource items:[DownwardAPIVolumeFile] defaultMode:i?=420
DownwardAPIVolumeFile path:s~ fieldRef:ObjectFieldSelector! resourceFieldRef:ResourceFieldSelector! mode:i?
ProjectedVolumeSource sources:[VolumeProjection]~ defaultMode:i?=420
VolumeProjection secret:ProjectedNameSource downwardAPI:DownwardAPIProjection configMap:ProjectedNameSource
  serviceAccountToken:ServiceAccountTokenProjection clusterTrustBundle:x podCertificate:x
ProjectedNameSource name:s items:[KeyToPath] optional:b?
DownwardAPIProjection items:[DownwardAPIVolumeFile]
ServiceAccountTokenProjection audience:s expirationSeconds:l?=3600 path:s~
PodStatus observedGeneration:l phase:s conditions:[PodCondition]/type message:s reason:s nominatedNodeName:s hostIP:s hostIPs:[HostIP]
  podIP:s podIPs:[PodIP]/ip startTime:t initContainerStatuses:[ContainerStatus] containerStatuses:[ContainerStatus] qosClass:s
  ephemeralContainerStatuses:[ContainerStatus] resize:s resourceClaimStatuses:[x] extendedResourceClaimStatus:x allocatedResources:{q}
  resources:ResourceRequirements
HostIP ip:s
PodIP ip:s
PodCondition type:s~ observedGeneration:l status:s~ lastProbeTime:t~ lastTransitionTime:t~ reason:s message:s
ContainerStatus name:s~ state:ContainerState~ lastState:ContainerState~ ready:b~ restartCount:i~ image:s~ imageID:s~ containerID:s
  started:b? allocatedResources:{q} resources:ResourceRequirements volumeMounts:[VolumeMountStatus]/mountPath user:x
  allocatedResourcesStatus:[x] stopSignal:s?
VolumeMountStatus name:s~ mountPath:s~ readOnly:b recursiveReadOnly:s?
ContainerState waiting:ContainerStateWaiting running:ContainerStateRunning terminated:ContainerStateTerminated
ContainerStateWaiting reason:s message:s
ContainerStateRunning startedAt:t~
ContainerStateTerminated exitCode:i~ signal:i reason:s message:s startedAt:t~ finishedAt:t~ containerID:s
)";

}  // namespace kubeopera::inline v1::testing::api
