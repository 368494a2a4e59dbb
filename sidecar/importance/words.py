# ruff: noqa: E501
"""The words by which a text shows what it is: function words, and markers of what it does, by language. Data only.

In a language with spaces an entry matches as whole words, and one that ends in `*` as the beginning of a word; in the
languages of WITHOUT_EDGES it matches wherever it stands, as their words bear endings or have no spaces around them; in Arabic it
begins a word, and one that ends in a space is whole. Entries may be regular expressions.
"""

from __future__ import annotations

from collections.abc import Mapping

WITHOUT_EDGES = frozenset(("zh", "ja", "ko", "th", "ar", "hi"))

FUNCTION_WORDS: Mapping[str, str] = {
    "de": """der die das und ist nicht ein eine einen dem den des zu mit auf für von im sich auch es an als bei wir ich
        du er sie ihr ihm uns so wie nach aus am um über oder aber dass wenn noch nur schon hat haben war sind wird""",
    "fr": """le la les des du de et est un une en que qui dans pour sur pas ne au aux ce cette ces il elle nous vous ils
        elles se sa son ses par avec plus je tu mais ou où à leur leurs été sont être avoir a ont y""",
    "es": """el la los las de del y es un una en que para por con no se su sus al lo como más pero o este esta estos si
        ya muy me mi tu te nos fue son ser está están ha han hay cuando a le les desde hasta entre sobre sin todo todos todas
        solo ni porque donde qué antes e eso ese esa""",
    "pt": """o a os as de do da dos das e é um uma em no na que para por com não se seu sua ao como mais mas ou este esta
        isso já muito me meu minha você nos foi são ser está tem há quando""",
    "it": """il lo la i gli le di del della dei e è un una in che per con non si su al alla come più ma o questo questa ci
        mi ti suo sua sono essere ha hanno da nel nella quando""",
    "nl": """de het een en is niet van in op te dat die voor met zijn er aan om ook als bij we ik je hij ze ons maar of
        dan nog naar uit door over wordt heeft hebben was""",
    "sv": """och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke mig du henne då
        sin nu har inte hans honom skulle""",
    "pl": "i w na z do że się nie to jest o jak ale po co tak za od przez przy dla czy ja ty on ona my są był była być ma",
    "tr": "ve bir bu da de için ile çok ama gibi daha en ne mi mı o şu ben sen biz siz onlar olarak olan var yok değil ki",
    "vi": "và là của có cho không được các một những trong với này đó khi đã sẽ để từ người thì mà ở tôi bạn anh chị nó",
    "id": "yang dan di ini itu dengan untuk tidak dari dalam akan pada juga ke karena saya kami kita anda ada atau sudah",
    "ru": """и в не на я что тот быть с а весь это как она по но они к у ты из мы за вы так же от сказать этот который
        мочь о для его её их мне нас вам был была были есть""",
    "uk": "і в не на я що з а це як вона по але вони до у ти із ми за ви так же від цей який для його її їх є був була",
    "el": "και το να του η της με που την από για τα είναι των σε ο οι στο θα τη στην δεν τον τους η ένα μια",
    "ar": "في من على إلى أن هذا هذه التي الذي عن مع كان كانت هو هي ما لا لم قد كل بعد قبل عند ثم أو و يا إن",
    "fa": "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شد شود دارد بود",
    "he": "של את על הוא היא לא זה עם כל גם אני אתה אנחנו יש אין אם או כי מה היה הם אבל רק",
    "hi": "के का की है में और से को पर यह वह कि ने हैं था थी थे भी नहीं एक हो कर तो ही जो इस उस लिए",
    "ko": "그 이 저 것 수 등 및 더 또 때 안 못 좀 잘 그리고 그래서 하지만 그런데 나는 내가 제가 우리 저는 있다 있는 하는 한 할",
}
"""Of the languages that are written with spaces; English has the tokenizer's stop words."""

HAN_FUNCTION = frozenset("的了是在和与也就都而及着吗呢吧这那我你他她它们有不要会个上到说对之其被把给让很没为以于")
THAI_FUNCTION = "ที่ และ ของ ใน เป็น ได้ ให้ จะ มี ไม่ การ ว่า กับ นี้ ก็ แต่ หรือ จาก อยู่ แล้ว ครับ ค่ะ นะ".split()

ACTION: Mapping[str, str] = {
    "en": """must|should|shall|need to|needs to|have to|has to|required|requires|require|always|never|don't|do not|ensure|
        make sure|remember to|don't forget|avoid|todo|to do|action item|follow up|next step|deadline|due|
        by (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|end of)|how to|step \\d|first,|
        then run|instead of|before you|only if|unless|warning|caution|careful|critical|urgent|blocker|blocking|allergic|
        allergy|emergency|outage|data loss|breaking|workaround|fix is|fixed by|solution|solved by|root cause|plan to|
        plans to|going to|promised|agreed|policy|rule|convention|standard|forbidden|allowed|approved|rejected|
        decided|decision|chose|chosen|settled on|concluded|we will|we'll|will use|switched to|migrated|adopted|
        deprecated|goal|lesson|
        please|promise|promises|owe|owes|owed|kept|keep in mind|from now on|henceforth|first|must not|mandatory|obligatory|prohibited|responsible for|needed|supposed to|reserved for|entitled|accepts?""",
    "de": "muss|müssen|soll|sollen|sollte|immer|niemals|nie|vermeide*|nicht vergessen|aufgabe|frist|bis zum|entschieden|"
    "entscheidung|beschlossen|vereinbart|wichtig|dringend|achtung|allergisch|schritt|anleitung|stattdessen|regel|lösung|"
    "ursache|plan*|verwende*|benutze*|"
    r"bitte|brauch*|künftig|fortan|ab sofort|ab \w+ nur|zuerst|niemals|versprochen|zugesagt|verpflicht*|pflicht|verboten|erlaubt|zuständig|hinweis|warnung|merken",
    "fr": "doit|doivent|devons|devrait|il faut|toujours|jamais|éviter|évite*|ne pas|n'oublie*|tâche|échéance|avant le|"
    "décidé*|décision|convenu|choisi*|urgent|attention|allergique|étape|comment|au lieu de|règle|solution|utilise*|"
    "veuillez|merci de|prière de|désormais|dorénavant|à partir de|d'abord|avant de|besoin de|promis|obligatoire*|interdit*|autorisé*|responsable de|attention|penser à|ne jamais",
    "es": "debe|deben|debemos|debería|hay que|tiene que|tenemos que|siempre|nunca|evita*|no olvid*|tarea|plazo|antes del|"
    "decidi*|decisión|acordado|acordamos|elegi*|urgente|cuidado|alérgic*|paso|cómo|en lugar de|regla|solución|usar|usa|"
    "hay que|hace falta|por favor|en adelante|a partir de|primero|antes de|prometí|prometió|prometido|obligatori*|prohibid*|permitid*|responsable de|cuidado con|atención|recordar|se debe",
    "pt": "deve|devem|devemos|deveria|é preciso|tem que|temos que|sempre|nunca|evit*|não esque*|tarefa|prazo|antes do|"
    "decidi*|decisão|combinado|escolh*|urgente|cuidado|alérgic*|passo|como|em vez de|regra|solução|usar|use",
    "it": "deve|devono|dobbiamo|dovrebbe|bisogna|sempre|mai|evita*|non dimenticare|compito|scadenza|entro|deciso|decisione|"
    "concordato|scelto|urgente|attenzione|allergic*|passo|come|invece di|regola|soluzione|usare|usa",
    "nl": "moet|moeten|zou moeten|altijd|nooit|vermijd*|vergeet niet|taak|deadline|voor het|besloten|besluit|afgesproken|"
    "gekozen|dringend|let op|allergisch|stap|hoe|in plaats van|regel|oplossing|gebruik*",
    "sv": "måste|ska|bör|alltid|aldrig|undvik*|glöm inte|uppgift|deadline|senast|beslut*|bestäm*|valde|viktig*|allergisk|"
    "steg|istället för|regel|lösning|använd*",
    "pl": "musi|muszą|trzeba|należy|powin*|zawsze|nigdy|unik*|zadanie|termin|decyzj*|zdecyd*|postanowi*|wybra*|pilne|uwaga|"
    "uczul*|krok|zamiast|zasad*|rozwiązani*|używa*",
    "tr": "gerek*|lazım|zorunda|mutlaka|her zaman|asla|unutma*|görev|son tarih|karar*|seçti*|acil|dikkat|alerji*|adım|nasıl|"
    "yerine|kural|çözüm|kullan*",
    "vi": "phải|cần|nên|luôn|không bao giờ|đừng|tránh|nhiệm vụ|hạn|quyết định|đã chọn|khẩn|cẩn thận|dị ứng|bước|cách|thay vì|"
    "quy tắc|giải pháp|dùng",
    "id": "harus|perlu|wajib|selalu|jangan|tidak boleh|hindari|tugas|tenggat|memutuskan|keputusan|memilih|penting|mendesak|"
    "alergi|langkah|cara|alih-alih|aturan|solusi|gunakan",
    "ru": "долж*|нужно|надо|необходимо|следует|всегда|никогда|избега*|не забуд*|задача|срок|дедлайн|реши*|решен*|выбра*|"
    "договори*|срочно|важно|осторожно|аллерги*|шаг|как|вместо|правил*|использ*|"
    "пожалуйста|отныне|впредь|сначала|сперва|прежде чем|обязан*|обязательн*|запрещ*|разреш*|обещал*|обещан*|отвечает за|осторожн*|внимание|помнить|требует*",
    "uk": "повин*|потрібно|треба|необхідно|слід|завжди|ніколи|уника*|не забуд*|завдання|термін|виріши*|рішення|обра*|"
    "домови*|терміново|важливо|обережно|алергі*|крок|замість|правил*|використ*",
    "el": "πρέπει|χρειάζεται|πάντα|ποτέ|αποφ*|μην|εργασία|προθεσμία|επιλέξα*|επείγον|προσοχή|αλλεργ*|βήμα|πώς|αντί|κανόνα*|λύση",
    "ar": "يجب|ينبغي|لا بد|دائما|دائمًا|أبدا|أبدًا|تجنب|لا تنس|مهمة|موعد|قبل يوم|قرر|قرار|اتفق|اخترنا|عاجل|احذر|حساسية|خطوة|"
    "كيف|بدلا من|بدلاً من|قاعدة|الحل|استخدم|"
    "الرجاء|يرجى|من فضلك|من الآن فصاعدا|ابتداء من|أولا|قبل أن|يلزم|لازم|إلزامي|ممنوع|محظور|مسموح|وعد|تعهد|مسؤول عن|انتبه|تذكر|مطلوب",
    "fa": "باید|همیشه|هرگز|نباید|وظیفه|مهلت|تصمیم|انتخاب|فوری|مراقب|حساسیت|مرحله|چگونه|به جای|قانون|راه حل|استفاده",
    "he": "חייב|צריך|תמיד|אף פעם|לעולם לא|אסור|משימה|מועד|החלטה|החלטנו|בחרנו|דחוף|זהירות|אלרגי|שלב|איך|במקום|כלל|פתרון|להשתמש",
    "hi": "चाहिए|ज़रूरी|जरूरी|हमेशा|कभी नहीं|मत|कार्य|समय सीमा|फैसला|निर्णय|चुना|तुरंत|सावधान|एलर्जी|कदम|कैसे|के बजाय|नियम|समाधान",
    "ko": "해야|하세요|하십시오|마세요|말 것|말것|금지|필수|반드시|항상|절대|꼭|할 일|마감|까지|결정|선택|합의|하기로|긴급|주의|중요|알레르기|"
    "단계|방법|대신|규칙|해결|원인|사용|"
    "주세요|앞으로|부터는|먼저|우선|의무|금지|허용|약속|담당|조심|유의|기억|말아|하지 않|있어야|필요",
    "ja": "しなければ|するべき|すべき|必要|必ず|常に|いつも|絶対|しないで|禁止|してください|タスク|締め切り|締切|期限|までに|決定|決め|選択|"
    "選ん|合意|緊急|注意|重要|アレルギー|手順|方法|代わりに|ルール|解決|原因|使用|使う|"
    "今後|これからは|まず|義務|許可|約束|担当|気をつけ|覚えて|ないと|してから|て下さい|てはいけ|ようにする|不可欠",
    "zh": "必须|必須|应该|應該|需要|务必|務必|总是|總是|从不|永远不|不要|禁止|请|請|任务|任務|截止|期限|之前|决定|決定|选择|選擇|采用|"
    "採用|同意|紧急|緊急|注意|重要|过敏|過敏|步骤|步驟|方法|而不是|代替|规则|規則|解决|解決|原因|使用|"
    "今后|往后|首先|先行|义务|允许|承诺|答应|负责|当心|小心|记住|记得|须|得先|不得|不准",
    "th": "ต้อง|ควร|จำเป็น|เสมอ|ห้าม|อย่า|งาน|กำหนดส่ง|ก่อนวันที่|ตัดสินใจ|เลือก|ตกลง|ด่วน|ระวัง|สำคัญ|แพ้|ขั้นตอน|วิธี|แทน|กฎ|แก้|ใช้|"
    "กรุณา|โปรด|ต่อไปนี้|นับจากนี้|ก่อนอื่น|จำเป็นต้อง|บังคับ|อนุญาต|สัญญาว่า|รับปาก|รับผิดชอบ|ระวัง|จำไว้|อย่าลืม",
}
"""Instructions, decisions, tasks, and what is at stake."""

IMPERATIVES = frozenset(
    """add address always answer apply archive ask avoid back backup block book build bump buy call cancel change check
    choose cite clean clear click close commit compare configure confirm contact copy count create cut delete deploy disable
    double drain drop email enable encrypt ensure escape export extract feed file fill fix flush format give go handle hash
    hold ignore import include increase inform install keep leave let limit list load lock log lower make merge migrate
    mount move never notify offer open order pass pause pay pin post prefer prepare publish pull push put raise read rebase
    rebuild record reduce regenerate reject release reload remember remove rename renew replace reply report request reset
    resolve restart restore retry return revert review revoke roll rotate run save scale schedule score send set share ship
    show sign skip sort split start stop store submit switch tag take tell test transcribe treat trim turn update upgrade
    upload use validate verify wait warn wipe write label bring mark reboot mind speak sit wash dry wear pack sign press quote
    squash join put promote confirm plan hide seal boil bake water greet expect learn stick stay respect rinse unplug
    plug""".split()
)
"""English verbs that tell what to do where a sentence begins with one."""

PREFERENCE: Mapping[str, str] = {
    "en": "prefer|prefers|preferred|preference|likes?|dislikes?|loves?|hates?|favou?rites?|enjoys?|wants?|would rather|"
    "can't stand|fond of|"
    "demands?|demanded|insists?|insisted|asks? for|asked (?:for|to|not|that|me)|wishes|needs",
    "de": "bevorzug*|mag|mögen|lieb*|hass*|lieber|möchte*|gern|gerne|lieblings*|"
    "will|wollen|wünsch*|verlang*|forder*|besteht auf|bittet|bat",
    "fr": "préfèr*|préféré*|aime*|déteste*|adore*|veut|voudrais|plutôt|"
    "exige*|réclame*|tient à|souhaite que|demande que|a besoin",
    "es": "prefier*|preferid*|gusta*|odi*|encanta*|quier*|favorit*|exig*|insist*|pide*|pidi*|requier*|necesita*",
    "pt": "prefer*|gost*|odei*|ador*|quer|favorit*",
    "it": "prefer*|piace|piacciono|odi*|ador*|vuole|voglio",
    "nl": "verkies*|liever|houdt van|hou van|haat|wil|graag|favoriet*",
    "sv": "föredrar|gillar|älskar|hatar|vill|favorit*|hellre",
    "pl": "wol*|lubi*|kocha*|nienawid*|chce*|ulubion*",
    "tr": "tercih*|sev*|nefret|istiyor*|favori*",
    "vi": "thích|ghét|muốn|ưa|yêu",
    "id": "lebih suka|suka|benci|ingin|favorit*",
    "ru": "предпочита*|нрав*|люб*|ненави*|хоч*|хотел*|требу*|настаива*|просит|просил*|просят|нуждает*",
    "uk": "надає перевагу|подоба*|люб*|ненави*|хоч*",
    "el": "προτιμ*|αρέσ*|αγαπ*|μισ*|θέλ*",
    "ar": "يفضل|تفضل|أفضل|يحب|تحب|أحب|يكره|أكره|يريد|أريد|المفضل|يطلب|طلب |طلبت|يصر |يشترط|يحتاج",
    "fa": "ترجیح|دوست دار|متنفر|می‌خواه|علاقه",
    "he": "מעדיף|מעדיפה|אוהב|אוהבת|שונא|רוצה|אהוב",
    "hi": "पसंद|नापसंद|नफरत|प्यार|चाहता|चाहती",
    "ko": "선호|좋아|싫어|원해|원합니다|사랑|즐겨|취향|요구|요청|고집|부탁|싶어",
    "ja": "好き|嫌い|好む|好み|希望|欲しい|したい|苦手|お気に入り|求め|要求|要望|こだわ|望ん",
    "zh": "喜欢|喜歡|偏好|讨厌|討厭|爱|愛|想要|更愿意|最爱|不喜欢|要求|坚持|希望|请求|需",
    "th": "ชอบ|เกลียด|รัก|อยาก|โปรด|ต้องการ|ขอให้|ยืนกราน|ร้องขอ",
}
VALUE: Mapping[str, str] = {
    "en": "important|critical|crucial|essential|avoid|best|worst|dangerous|terrible|great|wonderful|awful|proud|worth|"
    "valuable|vital|must|never|serious|precious|meaningful|painful|amazing",
    "de": "wichtig*|kritisch*|wesentlich*|vermeide*|beste*|schlimm*|gefährlich*|schrecklich*|wunderbar*|stolz|wertvoll*",
    "fr": "important*|critique*|essentiel*|éviter|meilleur*|pire|dangereu*|terrible*|merveilleu*|fier|fière|précieu*",
    "es": "important*|crític*|esencial*|evitar|mejor|peor|peligros*|terrible|maravillos*|orgullos*|valios*",
    "pt": "important*|crític*|essencia*|evitar|melhor|pior|perigos*|terrível|maravilhos*|orgulhos*|valios*",
    "it": "important*|critic*|essenzial*|evitare|miglior*|peggior*|pericolos*|terribil*|meraviglios*|orgoglios*",
    "nl": "belangrijk*|kritiek*|essentieel|vermijd*|beste|slechtste|gevaarlijk*|verschrikkelijk|prachtig|trots",
    "sv": "viktig*|kritisk*|väsentlig*|undvik*|bästa|värsta|farlig*|hemsk*|underbar*|stolt",
    "pl": "ważn*|krytyczn*|unik*|najleps*|najgors*|niebezpieczn*|okropn*|wspania*|dumn*",
    "tr": "önemli|kritik|kaçın*|en iyi|en kötü|tehlikeli|korkunç|harika|gurur*",
    "vi": "quan trọng|tránh|tốt nhất|tệ nhất|nguy hiểm|khủng khiếp|tuyệt vời|tự hào",
    "id": "penting|kritis|hindari|terbaik|terburuk|berbahaya|mengerikan|luar biasa|bangga",
    "ru": "важн*|критич*|избега*|лучш*|худш*|опасн*|ужасн*|замечательн*|горд*|ценн*",
    "uk": "важлив*|критичн*|уника*|найкращ*|найгірш*|небезпечн*|жахлив*|чудов*|пиша*|цінн*",
    "el": "σημαντικ*|κρίσιμ*|αποφ*|καλύτερ*|χειρότερ*|επικίνδυν*|τρομερ*|υπέροχ*|περήφαν*",
    "ar": "مهم|حرج|ضروري|تجنب|الأفضل|الأسوأ|خطير|رهيب|رائع|فخور|قيم",
    "fa": "مهم|حیاتی|ضروری|بهترین|بدترین|خطرناک|وحشتناک|عالی|افتخار|ارزشمند",
    "he": "חשוב|קריטי|חיוני|להימנע|הטוב ביותר|הגרוע|מסוכן|נורא|נפלא|גאה|יקר",
    "hi": "महत्वपूर्ण|ज़रूरी|जरूरी|सबसे अच्छा|सबसे बुरा|खतरनाक|भयानक|शानदार|गर्व|कीमती",
    "ko": "중요|치명|필수|피해야|최고|최악|위험|끔찍|훌륭|자랑|소중|가치",
    "ja": "重要|大切|大事|避け|最高|最悪|危険|ひどい|素晴らしい|誇り|貴重",
    "zh": "重要|关键|關鍵|必要|避免|最好|最差|最糟|危险|危險|可怕|精彩|自豪|宝贵|寶貴",
    "th": "สำคัญ|จำเป็น|หลีกเลี่ยง|ดีที่สุด|แย่ที่สุด|อันตราย|แย่มาก|ยอดเยี่ยม|ภูมิใจ|มีค่า",
}
FIRST_PERSON: Mapping[str, str] = {
    "en": "i|i'm|i've|i'd|i'll|me|my|mine|myself|we|our|ours|us",
    "de": "ich|mir|mich|mein*|wir|uns|unser*",
    "fr": "je|j'\\w*|moi|mon|ma|mes|nous|notre|nos",
    "es": "yo|me|mi|mis|mío|mía|nosotros|nosotras|nuestr*",
    "pt": "eu|me|meu|minha|meus|minhas|nós|noss*",
    "it": "io|mi|mio|mia|miei|noi|nostr*",
    "nl": "ik|mij|mijn|wij|we|ons|onze",
    "sv": "jag|mig|min|mitt|mina|vi|oss|vår*",
    "pl": "ja|mnie|mój|moja|moje|my|nas|nasz*",
    "tr": "ben|beni|benim|biz|bizim",
    "vi": "tôi|mình|chúng tôi|chúng ta",
    "id": "saya|aku|kami|kita",
    "ru": "я|меня|мне|мой|моя|мое|моё|мои|мы|нас|нам|наш*",
    "uk": "я|мене|мені|мій|моя|моє|ми|нас|наш*",
    "el": "εγώ|μου|με|εμείς|μας",
    "ar": "أنا|نحن|لدي|عندي|أحب|أفضل|أكره|أريد",
    "fa": "من|ما|خودم",
    "he": "אני|שלי|אנחנו|שלנו|אותי",
    "hi": "मैं|मुझे|मेरा|मेरी|हम|हमारा",
    "ko": "나는|내가|제가|저는|나의|우리",
    "ja": "私|僕|俺|わたし|我々|自分",
    "zh": "我",
    "th": "ฉัน|ผม|ดิฉัน|เรา",
}
DECISION: Mapping[str, str] = {
    "en": "decided|decides|decision|chose|chosen|concluded|settled on|agreed|opted|picked|resolved|committed to|we will|"
    "switched to|going with",
    "de": "entschieden|entscheidung|beschlossen|gewählt|vereinbart",
    "fr": "décidé*|décision|choisi*|conclu*|convenu*",
    "es": "decidi*|decisión|elegi*|conclui*|acord*",
    "pt": "decidi*|decisão|escolhi*|conclu*|combin*",
    "it": "decis*|scelt*|conclus*|concordat*",
    "nl": "besloten|besluit|gekozen|afgesproken",
    "sv": "beslut*|bestäm*|valde|kom överens",
    "pl": "zdecyd*|decyzj*|wybra*|postanowi*|uzgodni*",
    "tr": "karar*|seçti*|anlaştı*",
    "vi": "quyết định|đã chọn|kết luận|đồng ý",
    "id": "memutuskan|keputusan|memilih|sepakat",
    "ru": "реши*|решен*|выбра*|заключ*|договори*",
    "uk": "виріши*|рішення|обра*|домови*",
    "el": "αποφάσισ*|απόφαση|επέλεξ*|συμφών*",
    "ar": "قرر|قرار|اختار|اخترنا|استنتج|اتفق",
    "fa": "تصمیم|انتخاب|نتیجه|توافق",
    "he": "החלטה|החלטנו|החליט|בחרנו|הסכמנו",
    "hi": "फैसला|निर्णय|चुना|सहमत",
    "ko": "결정|선택|결론|합의|하기로",
    "ja": "決定|決め|選択|選ん|結論|合意",
    "zh": "决定|決定|选择|選擇|结论|結論|同意|采用|採用",
    "th": "ตัดสินใจ|เลือก|สรุป|ตกลง",
}
STATE: Mapping[str, str] = {
    "en": "is|are|was|were|has|have|means|equals|uses|lives|works|named|called|born|costs|runs|contains|supports|located|"
    "consists|defaults|listens|stores|returns|version|port|address|phone|birthday|owns|"
    "am|lives|live|keeps?|kept|hangs?|sits|stands?|sleeps|treats|accepts|stored|belongs?|needs?|takes?|begins?|ends?|closes|opens|close|costs|leads|run|speaks|birthday|anniversary|cannot|works as|holds",
    "de": "ist|sind|war|hat|heißt|bedeutet|nutzt|wohnt|arbeitet|kostet|läuft|enthält|"
    "steht|liegt|hängt|gehört|leitet|leite|heiße|führe|beginnt|beginnen|endet|schließt|öffnet|kennt|braucht|spricht|geburtstag|bin",
    "fr": "est|sont|était|a|signifie|utilise|habite|travaille|coûte|contient|s'appelle|"
    "sont|est|suis|dirige|tient|m'appelle|commence*|finit|ferme*|ouvre*|appartient|se trouve|parle*|anniversaire|conduit|garde*",
    "es": "es|son|era|tiene|significa|usa|vive|trabaja|cuesta|contiene|se llama|"
    "soy|dirijo|llevo|me llamo|empieza*|termina*|cierra*|abre*|pertenece|está en|guarda*|habla*|cumpleaños|se pide*|se pagan?",
    "pt": "é|são|era|tem|significa|usa|mora|trabalha|custa|contém|se chama",
    "it": "è|sono|era|ha|significa|usa|vive|lavora|costa|contiene|si chiama",
    "nl": "is|zijn|was|heeft|betekent|gebruikt|woont|werkt|kost|bevat|heet",
    "ar": "هو|هي|كان|لديه|يعني|يعمل|يعيش|يستخدم|اسمه|عنوان|"
    "اسمي|أنا |أدير|يقع|محفوظ|موجود|يبدأ|ينتهي|يغلق|يفتح|يملك|يتكلم|عيد ميلاد|يوقع|يدفع|تمر ",
    "ru": "это|был*|имеет|означает|живёт|живет|работает|стоит|содержит|зовут|использует|"
    "находится|хранит*|называет*|лежит|стоит|принадлежит|начинает*|заканчивает*|закрыт*|открыт*|говорит|день рождения|веду|работаю|действует|подписыва*|проход*",
    "ko": "이다|입니다|예요|이에요|있다|있습니다|산다|삽니다|근무|사용|"
    "보관|이름은|운영|위치|시작|끝난|닫는|열린|연다|소유|말한다|생일|입니다|낸다|진행한다|서명",
    "ja": "です|である|だ。|います|あります|住んで|働い|使って|"
    "保管|名前は|営ん|所在|始ま|終わ|閉ま|開く|開か|所有|話す|誕生日|払い|行う|持ち|できる",
    "zh": "是|为|為|有|住在|工作|使用|叫|等于|"
    "保管|存放|放在|我叫|名字|开店|位于|开始|结束|关门|开门|属于|会说|生日|交|签字|走",
    "th": "คือ|เป็น|มี|อาศัย|ทำงาน|ชื่อ|อยู่ที่|เก็บ|ชื่อ|เปิดร้าน|ตั้งอยู่|เริ่ม|สิ้นสุด|ปิด|เปิด|ของ|พูด|วันเกิด|เซ็น|จ่าย|ผ่าน",
    "hi": "है|हैं|था|रहता|रहती|काम",
}
LINK: Mapping[str, str] = {
    "en": "see|see also|related to|refers to|as discussed|because|since we|due to|depends on|same as|replaces|supersedes|"
    "instead of|compared with|compared to|linked to|part of|follows|based on|according to|ticket|issue|pull request|doc",
    "de": "siehe|wegen|weil|abhängig von|statt|teil von|basiert auf|laut",
    "fr": "voir|à cause|parce que|dépend de|au lieu de|partie de|basé sur|selon",
    "es": "ver|véase|porque|debido a|depende de|en lugar de|parte de|basado en|según",
    "ru": "см|потому что|из-за|зависит от|вместо|часть|на основе|согласно",
    "ar": "انظر|لأن|بسبب|يعتمد على|بدلا من|جزء من|وفقا",
    "ko": "참고|때문|의존|대신|관련|에 따르면|기반",
    "ja": "参照|ため|依存|代わりに|関連|によると|基づ",
    "zh": "参见|參見|因为|因為|由于|依赖|代替|相关|相關|根据|根據|基于",
    "th": "ดู|เพราะ|เนื่องจาก|ขึ้นอยู่กับ|แทน|เกี่ยวข้อง|ตาม",
}
SMALL_TALK: Mapping[str, str] = {
    "en": "thanks|thank you|hello|hi|hey|good morning|good night|bye|lol|haha|ok|okay|sounds good|no problem|you're welcome|"
    "great|awesome|cool|nice|sure|yeah|yep|wow|absolutely|glad|take care|talk soon|see you|good luck|congrats|got it|understood|will do|no worries|perfect|good point|makes sense|cheers|"
    "good afternoon|good evening|hope you|how are you|welcome|best regards|kind regards|all the best|have a nice|have a great",
    "de": "danke|hallo|guten morgen|tschüss|ok|klingt gut|kein problem|gern geschehen|super|klar|genau|"
    "guten tag|guten abend|schönen tag|liebe grüße|viele grüße|wie geht|willkommen|alles gute|bis bald",
    "fr": "merci|bonjour|salut|au revoir|ok|d'accord|pas de problème|super|génial|"
    "bonsoir|bonne journée|j'espère que|comment allez|comment ça va|bienvenue|à bientôt|bien à vous|cordialement",
    "es": "gracias|hola|buenos días|adiós|vale|ok|de nada|genial|claro|"
    "buenas tardes|buenas noches|buen día|espero que|cómo está|qué tal|bienvenid*|un saludo|saludos|hasta pronto",
    "pt": "obrigad*|olá|oi|bom dia|tchau|ok|de nada|legal|claro",
    "it": "grazie|ciao|buongiorno|arrivederci|ok|va bene|prego|fantastico|certo",
    "nl": "bedankt|hallo|goedemorgen|doei|ok|graag gedaan|leuk|prima",
    "ru": "спасибо|привет|здравствуйте|пока|ок|хорошо|ладно|отлично|конечно|"
    "доброе утро|добрый день|добрый вечер|надеюсь|как дела|хорошего дня|удачи|до свидания|всего доброго",
    "ar": "شكرا|مرحبا|السلام عليكم|مع السلامة|حسنا|عفوا|رائع|"
    "صباح الخير|مساء الخير|أتمنى لكم|كيف حالك|أهلا|إلى اللقاء|مع أطيب|يوما سعيدا",
    "ko": "감사|고마워|안녕|ㅋㅋ|ㅎㅎ|네네|알겠|좋아요|수고|좋은 아침|반갑|잘 지내|좋은 하루|환영|안녕히|행운",
    "ja": "ありがとう|こんにちは|おはよう|さようなら|了解|笑|いいね|お疲れ|"
    "こんばんは|お元気|よろしくお願い|ようこそ|おやすみ|ごきげん",
    "zh": "谢谢|謝謝|你好|早上好|再见|再見|好的|哈哈|不客气|嗯|下午好|晚上好|您好|最近好吗|祝您|祝一切|欢迎|晚安|感谢",
    "th": "ขอบคุณ|สวัสดี|ลาก่อน|โอเค|555|ยินดี|อรุณสวัสดิ์|ขอให้เป็นวัน|ขอให้มี|ขอให้โชค|สบายดี|ยินดีต้อนรับ|โชคดี|ราตรีสวัสดิ์",
    "hi": "धन्यवाद|नमस्ते|ठीक है|शुक्रिया",
}
HEDGE: Mapping[str, str] = {
    "en": r"maybe|perhaps|might|not sure|i guess|i think|probably|possibly|seems?|unclear|tbd|some (?:sort|kind) of|some|somebody|someone|"
    r"something|somehow|somewhere|a bit|a little|sort of|kind of|quite|(?<!would )(?<!'d )rather(?! than)|fairly|slightly|pretty|decent|sometimes|tends? to|often|"
    r"usually|more or less|a lot|a few|apparently|supposedly|generally|in general|and so on|whatever|stuff|things?|good time|"
    r"impression|depending|what else|annoying|normal|"
    r"sensible|reasonable|silly|appropriate\w*|suitable|adequate\w*|as needed|somewhat|in good time|in principle|one would|could be|would be nice|what if|suppose|rumou?rs?|heard from|someone said",
    "de": "vielleicht|möglicherweise|nicht sicher|wahrscheinlich|irgend*|ein bisschen|etwas|manchmal|meistens|oft|offenbar|anscheinend|"
    "wohl|mal|ungefähr|ziemlich|eher|mehr oder weniger|ein paar|mehrere|sachen|und so weiter|eigentlich|im großen und ganzen|"
    "vernünftig*|angemessen*|sinnvoll*|passend*|bei bedarf|grundsätzlich|man müsste|man könnte|was wäre|angeblich|es heißt|vermutlich|eventuell|könnte*|hätte*",
    "fr": "peut-être|pas sûr|probablement|un peu|parfois|souvent|en général|plutôt|assez|quelque chose|quelqu'un|quelques|une sorte de|"
    "apparemment|il paraît|semble|plus ou moins|des choses|trucs?|et ainsi de suite|normalement|"
    "raisonnable*|convenable*|approprié*|si besoin|en principe|on pourrait|faudrait|et si|on dit que|rumeur*|soi-disant|devrait peut|pourrait|éventuellement",
    "es": "quizás?|tal vez|no estoy seguro|probablemente|un poco|a veces|a menudo|en general|bastante|más o menos|algo|alguien|algún|"
    "alguna|algunos|unos|una especie de|al parecer|parece|según comentan|cosas|depende|lo normal|y así|"
    "razonable*|adecuad*|sensat*|si hace falta|en principio|habría que|se podría|podría|y si|se dice|dicen que|rumor*|supuestamente|a lo mejor|creo que|igual",
    "ru": "может быть|возможно|не уверен|вероятно|немного|иногда|часто|обычно|в целом|довольно|как-то|что-то|кто-то|какой-то|какая-то|"
    "вроде|похоже|более или менее|вещи|и так далее|наверное|"
    "разумн*|подходящ*|по мере необходимости|в принципе|можно было бы|а что если|кажется|вроде бы|говорят|якобы|по слухам|где-то|кто-то|видимо|наверно",
    "ar": "ربما|لست متأكدا|على الأرجح|قليلا|أحيانا|غالبا|عموما|نوعا ما|شيء ما|شخص ما|بعض|يبدو|أشياء|وما إلى ذلك|إلى حد ما|عادة|"
    "معقول|مناسب|عند الحاجة|من حيث المبدأ|من الممكن|ماذا لو|يقال|سمعت أن|إشاعة|قد يكون|لعل|أظن|أعتقد",
    "ko": "아마|혹시|모르겠|일단|조금|좀 |가끔|자주|대체로|보통|꽤 |어느 정도|뭔가|누군가|어떤|것 같|듯하|듯 |대충|여러 가지|등등|편이|"
    "적당|적절|합리적|필요하면|원칙적으로|만약에|어떨까|다고 들|다고 하던|던데|소문|쯤|글쎄",
    "ja": "たぶん|多分|かもしれ|わからない|少し|時々|たまに|だいたい|大体|なんとなく|何か|誰か|ある程度|らしい|ようだ|みたい|いろいろ|など|"
    "なんか|普通|それなり|"
    "適当|適切|ほどほど|必要に応じ|もしか|どうだろう|だろう|そうだ|とか|気がする|噂|聞いた話|くらい|でしょう",
    "zh": "也许|也許|可能|不确定|不確定|大概|有点|有點|有时|有時|经常|經常|一般|比较|比較|差不多|某些|某个|有人|好像|似乎|听说|聽說|什么的|等等|东西|随便|各种|"
    "合理|适当|适合|酌情|原则上|说不定|吧|听人说|的样子|不太清楚|据说|传言|估计|大约|应该是|可能会",
    "th": "อาจ|ไม่แน่ใจ|น่าจะ|บ้าง|นิดหน่อย|บางครั้ง|บางคน|บ่อย|โดยทั่วไป|ค่อนข้าง|ประมาณ|คล้าย|อะไรสักอย่าง|ใครสักคน|ดูเหมือน|หลายอย่าง|เรื่อย ๆ|"
    "สมควร|เหมาะสม|ตามสมควร|โดยหลักการ|สมมติ|ได้ยินมาว่า|เขาว่า|มั้ง|คงจะ|คง|ลือ|ราว ๆ",
}
"""What leaves open what is said: doubt, and words that stand for something without naming it."""
