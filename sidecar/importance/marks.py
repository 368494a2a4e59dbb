# ruff: noqa: E501
"""Words that tell what lasts from what passes, by language. Data only; entries match as in `words`.

A memory is worth keeping for what will hold and matter again: limits, conditions, what is at stake. It is worth little
for what holds now, for what was only chatted or vented, for what is vague, and for insisting. English marks count in
every language. Each list holds common words of the language itself; names, products and topics have no place here.
"""

from __future__ import annotations

from collections.abc import Mapping

LIMIT: Mapping[str, str] = {
    "en": r"only|at most|at least|no more than|no longer|no exceptions?|except|unless|exactly|maximum|minimum|max|limits?|quota|"
    r"caps?|no \w+|nothing|cannot|can't|can never|may not|must not|not|neither|without|ruled out|rather than|until|per \w+|"
    r"(?:above|below|under|over|after|before|past|by) \d\S*|every|each|all|both|when|whenever|if|once|as soon as|twice|daily|"
    r"weekly|monthly|valid|expires?|starting|corrections?|corrected|wrong|moved to|changed to|renamed|replaced|switched|instead",
    "de": "nur|höchstens|mindestens|außer|ausschließlich|genau|kein*|nicht|ohne|weder|darf|dürfen|bis|ab|pro|je|jede*|täglich|"
    "wöchentlich|wenn|falls|sobald|bevor|vor jedem|nachdem|statt|gilt|sonst|stets|korrektur|geändert|umbenannt|ersetzt",
    "fr": "seulement|uniquement|au plus|au moins|maximum|minimum|sauf|exactement|aucun*|sans|ni|jusqu*|par|chaque|tous les|"
    "quand|lorsque|si|dès que|avant|après|sinon|pas de|ne pas|toutes les|correction|remplacé*|renommé*",
    "es": "solo|sólo|solamente|únicamente|como máximo|máximo|al menos|mínimo|salvo|excepto|exactas?|exactamente|ningún|"
    "ninguna|sin|ni|no|hasta|por|cada|todos los|cuando|siempre que|si|antes de|después de|a partir de|caduca|nada de|corrección|cambi[óa]|reemplaz*|renombr*|en vez de",
    "ru": "только|не более|не менее|максимум|минимум|кроме|ровно|нельзя|без|ни|не|до|на каждый|кажд*|если|когда|перед|"
    "после|прежде чем|лишь|запрещ*|начиная|исправлени*|заменен*|заменён*|переименов*|вместо",
    "ar": "فقط|على الأكثر|على الأقل| إلا |باستثناء|دون|بدون| لا |ولا | ليس |وليس | حتى | لكل | كل | إذا |وإذا | عند |عندما| قبل | بعد |لا يجوز|ممنوع|يمنع|حصرا|تصحيح|استبدل",
    "ko": "에만|에서만|까지만|로만|때만|만 사용|만 허용|만 가능|만 받|만 한다|이하|이상|이내|최대|최소|제외|없이|않는|않도록|안 된다|안 됨|못 |불가|금지|마다|매주|매일|매월|면 |경우|때는|때만|"
    "뒤에|전에|후에|부터|이후|반드시|정정|변경|교체",
    "ja": "のみ|だけ|以上|以下|以内|以降|まで|最大|最小|上限|除く|以外|なし|不可|禁止|しない|できない|れない|せない|はならない|はいけない|ないこと|ず、|毎週|毎日|毎月|ごと|場合|たら|とき|時は|"
    "前に|後に|こと。|必須|避ける|一切|しか|訂正|変更|改名",
    "zh": "只|仅|僅|最多|最少|至少|不得|不能|不可|不许|不許|不要|不超过|不超過|以内|以上|以下|除了|除非|一律|严禁|嚴禁|禁止|无需|每|如果|若|一旦|"
    "之前|之后|之後|前必须|后才|才能|否则|否則|统一|統一|必须|必須|勿|请别|千万别|更正|改为|改成|更名",
    "th": "เท่านั้น|ไม่เกิน|อย่างน้อย|สูงสุด|ต่ำสุด|ยกเว้น|ห้าม|ไม่ต้อง|ไม่รับ|ไม่ให้|ไม่มี|โดยไม่|ทุก|ครั้งละ|วันละ|ถ้า|หาก|เมื่อ|ก่อน|หลังจาก|ตั้งแต่|จนกว่า|ภายใน|เฉพาะ|แก้ไขเป็น|เปลี่ยนเป็น|เปลี่ยนจาก",
}
"""Limits, conditions and recurrences: what makes a sentence a rule that will apply again."""

STAKE: Mapping[str, str] = {
    "en": r"allerg\w*|intoleran\w*|coeliac|celiac|diabet\w*|insulin|asthma\w*|epilep\w*|pregnan\w*|anaphyla\w*|medic\w*|dose|"
    r"dosage|\d+ ?mg|blood type|disab\w*|surgery|emergency|legal\w*|contracts?|laws?|audit\w*|regulat\w*|complian\w*|licen[cs]e\w*|"
    r"passwords?|credentials?|tokens?|secrets?|keys?|pins?|confidential|private|deadlocks?|crash\w*|corrupt\w*|breaks?|broke|"
    r"kills?|fails?|loses?|lost|leaks?|silently|data loss|outage|root cause|fixed|because|due to|otherwise|or else",
    "de": "allerg*|unverträglich*|zöliakie|diabet*|insulin|asthma|epilep*|schwanger*|medikament*|dosis|notfall|vertrag*|gesetz*|"
    "prüf*|lizenz*|passwort|passwörter|zugangsdaten|schlüssel|geheim*|vertraulich|absturz|stürzt|verlier*|verlust|kaputt|fehler*|"
    "ursache|behoben|weil|wegen|sonst",
    "fr": "allergi*|intolér*|diab*|insuline|asthm*|épilep*|enceinte|médic*|dose|urgence|contrat*|loi|légal*|audit|licence|mot de passe|"
    "clé|secret*|confidentiel*|panne|plant*|perd*|perte|corromp*|cause|corrigé|parce que|sinon",
    "es": "alérg*|alergi*|intoleran*|celíac*|diab*|insulina|asma|epilep*|embaraz*|medic*|dosis|emergencia|contrat*|ley|legal*|auditor*|"
    "licencia*|contraseña*|clave*|secret*|confidencial*|fall*|pierd*|pérdida|rompe*|corromp*|causa|corrig*|porque|debido|si no",
    "ru": "аллерги*|непереносим*|диабет*|инсулин*|астм*|эпилеп*|беремен*|лекарств*|доз*|договор*|закон*|аудит*|лицензи*|пароль|пароли|"
    "ключ*|секрет*|конфиденц*|сбо*|падает|теря*|потер*|ломает*|причин*|исправ*|потому|иначе",
    "ar": "حساسية|سكري|أنسولين|ربو|صرع|حامل|دواء|جرعة|طوارئ|عقد|قانون|تدقيق|ترخيص|كلمة المرور|كلمة السر|مفتاح| سري |سرية|يفشل|يتعطل|فقدان|يضيع|"
    "تلف|سبب|لأن|وإلا",
    "ko": "알레르기|당뇨|인슐린|천식|뇌전증|임신|복용|투약|용량|응급|계약|법적|법률|규정|라이선스|비밀번호|암호|인증|키는|비공개|기밀|장애|"
    "실패|유실|손실|깨진|깨짐|중단|원인|때문|수정했|고쳤",
    "ja": "アレルギー|糖尿|インスリン|喘息|てんかん|妊娠|服用|投薬|用量|救急|契約|法律|法令|監査|規制|ライセンス|パスワード|認証|鍵|秘密|非公開|"
    "障害|失敗|消える|失われ|破損|壊れ|停止|原因|ため|修正|叱ら",
    "zh": "过敏|過敏|糖尿|胰岛素|哮喘|癫痫|怀孕|懷孕|服药|用药|药物|吃药|剂量|急救|合同|法律|合规|审计|審計|许可证|密码|密碼|凭证|密钥|密鑰|保密|机密|故障|失败|失敗|"
    "丢失|丢弃|遗失|损坏|崩溃|死锁|原因|因为|因為|否则|导致|導致",
    "th": "แพ้|เบาหวาน|อินซูลิน|หอบหืด|ลมชัก|ตั้งครรภ์|กินยา|ใช้ยา|แพ้ยา|ขนาดยา|ฉุกเฉิน|สัญญา|กฎหมาย|ตรวจสอบบัญชี|ใบอนุญาต|รหัสผ่าน|กุญแจ|ความลับ|ล่ม|ล้มเหลว|สูญหาย|"
    "เสียหาย|พัง|สาเหตุ|เพราะ|มิฉะนั้น",
}
"""What it costs to forget: health, law, access, loss; and why something went wrong."""

PASSING: Mapping[str, str] = {
    "en": r"right now|just now|at the moment|at present|currently|for now|as of this \w+|just|so far|today|tonight|this morning|"
    r"this afternoon|this evening|still \w+|waiting|i'm \w+ing|is \w+ing|are \w+ing|temporary|temporarily|tmp|temp|scratch|wip|trying|"
    r"tried|ran out of time|will see|until i|in a minute|back from|yesterday|again|discuss\w*|considered|considering|thinking about|brainstorm\w*|"
    r"wonder\w*|undecided|open question",
    "de": "gerade|jetzt|momentan|im moment|derzeit|aktuell|zurzeit|noch im|noch am|vorläufig|heute|gestern|vorhin|eben|gleich|"
    "warte|wartet|sitze|bin dabei|versuche|kurz|überleg*|diskutier*|unentschieden",
    "fr": "en ce moment|maintenant|actuellement|pour l'instant|pour le moment|aujourd'hui|hier|ce matin|ce soir|en train de|"
    "attend*|encore en|provisoire*|discut*|réfléchi*|hésit*",
    "es": "ahora|ahora mismo|en este momento|de momento|por ahora|actualmente|hoy|ayer|esta mañana|esta tarde|esta noche|"
    "estoy|está \\w+ndo|sigo|sigue|esperando|todavía|un rato|discut*|pensando|considerando|sin decidir",
    "ru": "сейчас|прямо сейчас|в данный момент|пока|пока что|сегодня|вчера|утром|вечером|жду|ждём|ещё|временно|пытаюсь|обсужда*|обсудил*|думаем|думает|раздумыва*",
    "ar": "الآن|حاليا|حاليًا|في هذه اللحظة|اليوم|أمس|البارحة|هذا الصباح|الليلة|أنتظر|ننتظر|ما زال|مؤقت|ناقش|نناقش|نفكر|يفكر|لم نقرر",
    "ko": "지금|현재|방금|오늘|어제|오늘 아침|오늘 저녁|당분간|임시|기다리|대기 중|하는 중|고 있는 중|중이다|중입니다|아직|잠깐|잠시|논의|고민|검토 중|생각 중",
    "ja": "今は|今、|今ちょうど|今のところ|いま|現在|ただいま|さっき|先ほど|今日|本日|昨日|今朝|今夜|とりあえず|一時的|待っ|待ち|ているところ|中です|まだ|ちょうど|ちょっと|検討|議論|考え中|相談|未定",
    "zh": "现在|現在|目前|此刻|正在|刚才|剛才|刚刚|剛剛|今天|昨天|今早|今晚|暂时|暫時|等着|等待|还在|還在|先这样|一会儿|这会儿|讨论|討論|考虑|考慮|商量|还没定|未定",
    "th": "ตอนนี้|ขณะนี้|กำลัง|เมื่อกี้|เมื่อสักครู่|วันนี้|เมื่อวาน|เช้านี้|คืนนี้|ชั่วคราว|รออยู่|รอดู|รอก่อน|สักพัก|เดี๋ยว|ยังไม่|เพิ่ง|คุยกัน|พิจารณา|คิดอยู่",
}
"""What holds now and will not tomorrow: states, work in hand, attempts that are going on."""

CHATTER: Mapping[str, str] = {
    "en": r"mentioned|recounted|anecdote|story|stories|chat|chatted|joked?|jokes|laugh\w*|enjoy\w*|lovely|gorgeous|pleasant|funny|nice|"
    r"weather|coffee|weekend|good time|great time|wished|hoped|hopes|thanked|chit|overall|fun|fond|cheerful|friendly|remembers|"
    r"angry|furious|fed up|worst|awful|tired|sigh\w*|feels|felt|happy|sad|surprising|cute|rainy|sunny",
    "de": "erzähl*|anekdote|geschichte|geplaudert|lacht*|gelacht|witz*|nett*|schön*|lustig*|wetter|kaffee|kuchen|wochenende|"
    "feierabend|gewünscht|bedankt|gefreut|freut|freude|genoss*|wütend|genervt|müde|traurig|glücklich|fühlt*|seufz*",
    "fr": "racont*|anecdote|histoire|bavard*|rire|rit|ri|blague*|joli*|agréable*|drôle*|météo|beau temps|café|week-end|souhait*|"
    "remerci*|espér*|content*|fâché*|marre|fatigué*|triste*|heureu*",
    "es": "cont[óa]|cuenta que|anécdota|historia|charl*|ri[óe]|reír*|broma*|bonit*|agradable*|divertid*|simpátic*|clima|café|fin de semana|"
    "dese[óa]*|agradeci*|encantad*|enfadad*|harto|harta|cansad*|triste*|feliz|contento|contenta|comentan",
    "ru": "рассказ*|анекдот*|истори*|болта*|смея*|шутк*|шутил*|мил*|приятн*|забавн*|погод*|кофе|выходн*|пожела*|поблагодар*|надея*|"
    "рад|рада|злит*|надоел*|устал*|груст*|счастлив*",
    "ar": "حكى|حكت|قصة|ضحك|يضحك|نكتة|لطيف|جميل|ممتع|الطقس|القهوة|قهوة|تمنى|تمنت|شكرني| شكر|سعيد|غاضب|تعب|حزين|ودعني|لذيذ",
    "ko": "이야기했|이야기를|얘기|수다|웃었|웃으|농담|재미있|재밌|예쁘|예쁜|귀여|날씨|커피|주말|즐거|고맙|고마워|감사하|반가|화가|짜증|피곤|슬프|"
    "행복|기분|느꼈|느낀",
    "ja": "話してくれ|話をして|思い出話|雑談|笑っ|笑い|冗談|楽し|かわい|可愛|きれい|天気|コーヒー|週末|嬉し|うれし|ありがと|お礼|怒っ|もう嫌|疲れ|"
    "悲し|幸せ|気分|気持ち|ため息|最悪",
    "zh": "聊|讲了|故事|笑|玩笑|有趣|好玩|可爱|可愛|漂亮|天气|天氣|咖啡|周末|週末|开心|開心|高兴|高興|祝你|祝大家|祝福|感谢|感謝|谢谢|生气|生氣|好烦|烦死|好累|太累|难过|心情|觉得|感觉",
    "th": "เล่า|เรื่องตลก|หัวเราะ|คุยเล่น|สนุก|น่ารัก|สวย|อากาศ|กาแฟ|สุดสัปดาห์|ขอบคุณ|ดีใจ|โกรธ|หงุดหงิด|เหนื่อย|เศร้า|มีความสุข|รู้สึก|อร่อย",
}
"""What is said in company and what is vented: stories, courtesies, moods."""

EMPHASIS: Mapping[str, str] = {
    "en": "very|super|really|extremely|so important|important|big deal|everybody|everyone|everything|absolutely|seriously|"
    "properly|top priority|double check|triple check|no matter what",
    "de": "sehr|extrem*|super|wirklich|unbedingt|wichtig*|absolut|alle müssen|total|ganz ganz|dringendst*|allerwichtigst*",
    "fr": "très|super|vraiment|extrêmement|important*|absolument|tout le monde|impératif|surtout|hyper",
    "es": "muy|súper|super|realmente|importantísim*|important*|absolutamente|todo el mundo|todos deben|urgentísim*|sobre todo|de verdad",
    "ru": "очень|супер|действительно|крайне|важн*|абсолютно|все должны|обязательно|ни в коем случае|самое главное",
    "ar": "جدا|جدًا|للغاية|مهم|في غاية|فعلا|حقا|الجميع|ضروري|أهم|بشدة",
    "ko": "매우|정말|진짜|너무|아주|중요|최우선|모두가|완벽하게|제대로|절대로|명심|다시 한번|강조",
    "ja": "とても|本当に|非常に|すごく|めちゃ|とにかく|重要|大事|最優先|みんな|全員|絶対に|くれぐれも|しっかり|ちゃんと|何度でも",
    "zh": "非常|真的|特别|特別|极其|極其|十分|超级|超級|重要|大家|千万|千萬|一定要|务必要|再次强调|最最|好好",
    "th": "มาก|สุด ๆ|จริง ๆ|สำคัญ|ทุกคน|เด็ดขาด|ที่สุด|ย้ำ|อย่างยิ่ง|แน่นอน",
}
"""How loudly something is said, which says nothing itself."""
